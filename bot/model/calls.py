"""A call to the inventory service, as the quota guard sees it: for whom, and what became of it."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from bot.errors import RateLimited
from bot.model.organization import OrganizationKey
from bot.model.told import ToldLimits

# The kinds of call that the guard and the charts know apart.
PROBE = "probe"
WATCH = "watch"
CHECK = "check"


@dataclass(frozen=True, slots=True)
class CallCause:
    """Why a call is made.

    `kind` is a short word for charts (`list`, `refresh`, `check`, `watch`, `probe`); a background
    call leaves room for people, and its turn waits until there is some.
    """

    kind: str
    slack_user_id: str | None = None
    background: bool = False

    @property
    def is_for_people(self) -> bool:
        """Whether a person waits for the answer: only then is a call that fails made again."""
        return not self.background and self.kind != PROBE


class Grant(Protocol):
    """One granted attempt, used as `async with guard.call(key, cause) as grant`.

    Leaving the context without `responded()` means that no answer was seen; leaving it without an
    error means that the call passed, so the organization is not blocked.
    """

    async def responded(self) -> None:
        """The response headers are here: the service has counted the call by now."""

    async def told(self, limits: ToldLimits) -> None:
        """The service told its limits in the headers of the answer."""

    async def refused(self, error: RateLimited) -> None:
        """The service answered 429."""


class QuotaGuard(Protocol):
    """Decides, before anything is sent, whether a call may be made."""

    def call(self, key: OrganizationKey, cause: CallCause) -> AbstractAsyncContextManager[Grant]:
        """One attempt at one call; a retry is a new one.

        Raises on entering: QuotaExhausted, OrganizationBlocked, DatabaseUnavailable.
        """
