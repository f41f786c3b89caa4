"""A service call, its cause, its answer and its outcome, as values that never show credentials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Self

from yarl import URL


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A request to a service, with the texts for messages about it.

    `label` is the service's name in a sentence; `advice` is for people, by HTTP status; `missing`
    is the sentence for a 404 from the service itself. `words_field` is the only field of an error's
    JSON that is shown.
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
        """The URL's path, without host and query, which is safe for logs."""
        return self.url.path

    @property
    def subject(self) -> str:
        """The label for the start of a sentence."""
        return self.label[:1].upper() + self.label[1:]


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer with a 2xx status; `body` is never shown to anyone."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Observed:
    """An attempt, for metrics and `status`; `outcome` is `ok` or the error's outcome."""

    service: str
    data_center: str | None
    outcome: str
    status: int | None
    seconds: float


Observer = Callable[[Observed], None]
"""Receives each attempt, successful or not; must not raise."""


# The kinds of call that the guard and the charts distinguish.
PROBE = "probe"
WATCH = "watch"
CHECK = "check"
GATEWAY = "gateway"
# The prefix of client names in the call ledger, where people are identified by their Slack IDs.
_CALLER = "client:"


def caller_of(client: str) -> str:
    """Return a client's name in the ledger."""
    return _CALLER + client


def client_named(caller: str | None) -> str | None:
    """Return the client for a ledger name; None for a person or the bot itself."""
    if caller is None or not caller.startswith(_CALLER):
        return None
    return caller.removeprefix(_CALLER)


@dataclass(frozen=True, slots=True)
class CallCause:
    """The reason for a call: a short label for charts, and the person or gateway client.

    Background calls wait for a free slot and leave some slots to people.
    """

    kind: str
    slack_user_id: str | None = None
    background: bool = False
    client: str | None = None

    @property
    def caller(self) -> str:
        """The caller's name in the ledger; "" for the bot itself."""
        return caller_of(self.client) if self.client else self.slack_user_id or ""

    @property
    def is_for_people(self) -> bool:
        """True if a person is waiting for the answer; only such calls are retried."""
        return not self.background and self.kind != PROBE


# No limit has more digits; longer values are ignored.
MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ReportedLimits:
    """The reported numbers as sent; callers check that they are plausible.

    Some deployments send these headers for the daily limit; others send zeros.
    """

    limit: int
    remaining: int
    reset_seconds: int

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self | None:
        """Return None unless all three headers are present and integers. `headers` ignores case."""
        sent = [headers.get(f"X-Rate-Limit-{name}", "") for name in ("Limit", "Remaining", "Reset")]
        if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in sent):
            return None
        return cls(*map(int, sent))


# These outcomes don't indicate a problem with a service: a rejection is caused by a person's input,
# and nobody waits for the answer to a cancelled call.
ANSWERS = frozenset({"service_refused", "cancelled"})
# `/emailkey check <resource>` tests whether the key can read the resource that the person typed.
HARMLESS = {"email": ANSWERS | {"permission_missing"}}


@dataclass(frozen=True)
class ServiceSeen:
    """A service's last success and failure; `is_failing` if the failure is the later one."""

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None
    is_failing: bool = False


class ServiceLog:
    """Remembers the outcomes of this process's calls."""

    def __init__(self, now: Callable[[], datetime], names: Sequence[str]) -> None:
        self._now = now
        self._seen = {name: ServiceSeen(name) for name in names}

    def note(self, name: str, failure: str | None) -> None:
        """Record a call: None for a success, otherwise a label for the failure."""
        old = self._seen.get(name, ServiceSeen(name))
        if failure is None:
            self._seen[name] = replace(old, succeeded_at=self._now(), is_failing=False)
        # Requests to an OAuth provider don't contain people's input, so its rejections concern the
        # settings.
        elif name.startswith("oauth") or failure not in HARMLESS.get(name, ANSWERS):
            self._seen[name] = replace(old, failed_at=self._now(), failure=failure, is_failing=True)

    def seen(self) -> list[ServiceSeen]:
        """Return the state of each service, in the order of the settings."""
        return list(self._seen.values())
