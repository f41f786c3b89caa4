"""The interface between a client of the inventory service and the guard of its calls."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.organizations.rules.organization import OrganizationKey
from bot.services.errors import RateLimited
from bot.services.rules.calls import CallCause
from bot.services.rules.reported import ReportedLimits


class CallPermit(Protocol):
    """A granted attempt, used as `async with guard.call(key, cause) as permit`.

    Leaving the context without `responded()` means that no answer arrived. Leaving it without an
    error means that the call passed, so the organization is not blocked.
    """

    def may_send(self) -> bool:
        """Return True if the request may be sent now; a permit is valid for a limited time."""

    async def responded(self) -> None:
        """Record that the response headers arrived: the service has counted the call."""

    async def reported(self, limits: ReportedLimits) -> None:
        """Record the limits in the headers of the answer."""

    async def refused(self, error: RateLimited) -> None:
        """Record a 429."""


class QuotaGuard(Protocol):
    """Decides, before anything is sent, if a call may be made."""

    def call(
        self, key: OrganizationKey, cause: CallCause
    ) -> AbstractAsyncContextManager[CallPermit]:
        """Grant one attempt at one call; each retry needs its own.

        Raises on entering: QuotaExhausted, OrganizationBlocked, DatabaseUnavailable.
        """
