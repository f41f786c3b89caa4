"""What a client of the inventory service needs of whoever counts its calls."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import CallCause
from bot.model.quotas.reported import ReportedLimits
from bot.service_errors import RateLimited


class CallPermit(Protocol):
    """One granted attempt, used as `async with guard.call(key, cause) as permit`.

    Leaving the context without `responded()` means that no answer was seen; leaving it without an
    error means that the call passed, so the organization is not blocked.
    """

    def may_send(self) -> bool:
        """Whether the request may be written now; what the permit holds lasts only so long."""

    async def responded(self) -> None:
        """The response headers are here: the service has counted the call by now."""

    async def reported(self, limits: ReportedLimits) -> None:
        """The service told its limits in the headers of the answer."""

    async def refused(self, error: RateLimited) -> None:
        """The service answered 429."""


class QuotaGuard(Protocol):
    """Decides, before anything is sent, whether a call may be made."""

    def call(
        self, key: OrganizationKey, cause: CallCause
    ) -> AbstractAsyncContextManager[CallPermit]:
        """One attempt at one call; a retry is a new one.

        Raises on entering: QuotaExhausted, OrganizationBlocked, DatabaseUnavailable.
        """
