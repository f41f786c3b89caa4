"""A quota guard that grants everything, and writes down what it was told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.organizations.rules import OrganizationKey
from bot.services.calls import CallCause, ReportedLimits
from bot.services.errors import RateLimited
from bot.services.http import Permit


class FakeGuard(Permit):
    """`events` has, in order: the key, "responded", told limits, refusals, "passed"."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.causes: list[CallCause] = []

    @asynccontextmanager
    async def call(self, key: OrganizationKey, cause: CallCause) -> AsyncIterator[Permit]:
        self.events.append(key)
        self.causes.append(cause)
        yield self
        self.events.append("passed")

    def may_send(self) -> bool:
        return True

    async def responded(self, limits: ReportedLimits | None = None) -> None:
        self.events += ["responded", *([limits] if limits else [])]

    async def refused(self, error: RateLimited) -> None:
        self.events.append(error.code)
