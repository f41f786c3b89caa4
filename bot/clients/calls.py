"""One call to a service and its answer, as values that never print a credential."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from typing import Literal, Protocol

from yarl import URL

from bot.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """What to send, and how to speak about it.

    `service` is the stable word for metrics, `label` the name in a sentence ("the inventory
    service (eu)"). `advice` says, by HTTP status, what people can do about it. `missing` is what a
    404 means that is the service's own, and not a proxy's. `words_field` is the one field of a
    refusal's JSON whose text is shown.
    """

    service: Literal["inventory", "flow", "email", "oauth"]
    label: str
    method: Literal["GET", "POST"]
    url: URL = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Sequence[tuple[str, str]] | None = field(default=None, repr=False)
    data_center: str | None = None
    advice: Mapping[int, str] = field(default_factory=dict, repr=False)
    missing: str = ""
    words_field: str = "message"

    @property
    def path(self) -> str:
        """Where to, without host and query: what a log line may show."""
        return self.url.path

    @property
    def subject(self) -> str:
        """The label at the beginning of a sentence."""
        return self.label[:1].upper() + self.label[1:]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer with a 2xx status; `body` is never shown to anyone."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Observed:
    """One attempt, for metrics and `status`: `outcome` is `ok` or that of the error."""

    service: str
    data_center: str | None
    outcome: str
    status: int | None
    seconds: float


class Observer(Protocol):
    """Is told about each attempt, whatever became of it."""

    def __call__(self, observed: Observed) -> None:
        """Must not raise."""


class Attempt(Protocol):
    """Is told when the response headers of an attempt are here."""

    def may_send(self) -> bool:
        """Whether the request may be written now: asked at the last moment before it is."""

    async def responded(self, status: int, headers: Mapping[str, str]) -> None:
        """Called once, before the body is read."""


class OpenAttempt(Protocol):
    """Makes the context of one attempt: a retry is a new one."""

    def __call__(self) -> AbstractAsyncContextManager[Attempt]:
        """Entered before anything is sent, left when the whole body is read, or with the error."""


def at_any_time() -> bool:
    """Whether a request may be written, where nothing forbids it: always."""
    return True


@dataclass(frozen=True, slots=True)
class Unguarded:
    """An attempt that nobody needs to hear of: the flow and the email service have no quota."""

    may_send: Callable[[], bool] = at_any_time

    async def responded(self, status: int, headers: Mapping[str, str]) -> None:
        """Nothing to do."""


def unguarded(
    may_send: Callable[[], bool] = at_any_time,
) -> AbstractAsyncContextManager[Attempt]:
    """The `OpenAttempt` of services without a quota."""
    return nullcontext(Unguarded(may_send))
