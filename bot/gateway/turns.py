"""Queues for gateway calls. Each process has one queue (a "line") for each organization.

Each line has a task that asks the ledger whether the next call can be made. The next call is the
oldest call from the client that has made the fewest calls in the current minute. After a decline,
the line waits until the time given by the ledger, but at most one second, because a slot may become
free sooner, for example after a plan change.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.errors import GatehouseError
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard, decline_error
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import NotNow
from bot.quotas.store import accounts
from bot.quotas.store.ledger import CallRequest, Reservation
from bot.services.calls import GATEWAY, CallCause, Write
from bot.services.http import Permit

# The interval for checking that a waiting client is still connected.
LOOK_SECONDS = 0.5
BELIEVED_SECONDS = 0.5
# Poll, because calls that end in other processes free their slots without notification.
BUSY_SECONDS = 0.1


class ClientGone(GatehouseError):
    """The client closed its connection before its call was sent."""

    outcome = "client_gone"
    sentence = "The client closed its connection."


class Stopping(GatehouseError):
    """The program is stopping, so it rejects waiting calls."""

    outcome = "stopping"
    sentence = "Gatehouse is being restarted. Nothing was sent."


@dataclass(frozen=True)
class _Decline:
    """The ledger's answer, which is believed until a time that is less than a second away."""

    answer: NotNow
    until: float

    def is_final(self, seconds: float) -> bool:
        """Return True if a call that can wait for this time won't be made.

        Slots of the minute and of the concurrency can be free earlier than the ledger expects.
        """
        is_too_late = self.answer.free_at - self.answer.now > seconds
        return seconds <= 0 or (self.answer.kind is LimitKind.DAY and is_too_late)


@dataclass(eq=False)
class _Waiter:
    """A call that waits for its turn until the deadline."""

    request: CallRequest
    client: str
    deadline: float
    is_gone: Callable[[], bool]
    granted: "asyncio.Future[Reservation]" = field(default_factory=asyncio.Future)
    decline: _Decline | None = None

    def fail(self, error: Exception) -> None:
        """End the wait with an error, unless it has already ended."""
        if not self.granted.done():
            self.granted.set_exception(error)


@dataclass(eq=False)
class _Line:
    key: OrganizationKey
    waiters: list[_Waiter] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def fail(self, error: Exception) -> None:
        for waiter in self.waiters:
            waiter.fail(error)
        self.changed.set()


class Turns:
    """Manages the lines of waiting calls. `shares` maps each client to its `share` setting."""

    def __init__(self, guard: Guard, shares: Mapping[str, float]) -> None:
        self.guard = guard
        self.clock = guard.clock
        self._shares = dict(shares)
        self._lines: dict[OrganizationKey, _Line] = {}
        # The key includes the client if only the client's share is used up.
        self._declines: dict[tuple[OrganizationKey, str | None], _Decline] = {}

    @asynccontextmanager
    async def call(
        self,
        key: OrganizationKey,
        client: str,
        seconds: float,
        is_gone: Callable[[], bool] = lambda: False,
        write: Write | None = None,
    ) -> AsyncIterator[Permit]:
        """Wait up to `seconds` for the call's turn, and then open its permit."""
        decline = self._declined(key, client)
        if decline is not None and decline.is_final(seconds):
            raise decline_error(decline.answer, key)
        deadline = self.clock.monotonic() + seconds
        # Nobody but clients calls other APIs, so nothing is kept for people.
        cause = CallCause(GATEWAY, background=not key.is_api, client=client, write=write)
        request = CallRequest(key, cause, self.guard.terms, self._shares.get(client, 1.0))
        waiter = _Waiter(request, client, deadline, is_gone)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(key)
            self.guard.tasks.start(self._serve(line), f"turns {key}")
        line.waiters.append(waiter)
        line.changed.set()
        # If this task is canceled just after the grant, the unused reservation expires by itself.
        reservation = await waiter.granted
        try:
            async with self.guard.granted(reservation) as call:
                yield call
        finally:
            # The response may have freed a slot earlier than expected, so ask the ledger again.
            for sharer in (None, client):
                self._declines.pop((key, sharer), None)
            if key in self._lines:
                self._lines[key].changed.set()

    def stop(self) -> None:
        """Reject all waiting calls."""
        for line in self._lines.values():
            line.fail(Stopping())

    async def _serve(self, line: _Line) -> None:
        try:
            while line.waiters:
                line.changed.clear()
                await self._grant(line)
                await self._until_changed(line)
        except Exception as error:  # noqa: BLE001 - raised in the callers
            line.fail(error)
        finally:
            line.fail(Stopping())
            del self._lines[line.key]

    async def _grant(self, line: _Line) -> None:
        """Grant calls until none of the remaining calls can be made now."""
        used: Counter[str] | None = None
        while waiter := self._next(line, used or Counter()):
            if used is None and len({waiter.client for waiter in line.waiters}) > 1:
                async with self.guard.spare, self.guard.database.read_only() as tx:
                    used = await accounts.minute_by_client(tx, line.key)
                continue
            result = await self.guard.reserve(waiter.request)
            if isinstance(result, NotNow):
                client = waiter.client if result.is_share else None
                seconds = BUSY_SECONDS
                if result.kind is not LimitKind.CONCURRENT:
                    seconds = max(seconds, min(BELIEVED_SECONDS, result.free_at - result.now))
                until = self.clock.monotonic() + seconds
                self._declines[line.key, client] = _Decline(result, until)
            elif waiter.granted.done():
                await self.guard.give_back(result)
            else:
                waiter.granted.set_result(result)
                if used is not None:
                    used[waiter.client] += 1

    def _next(self, line: _Line, used: Counter[str]) -> _Waiter | None:
        """Reject calls that can't wait any longer. Return the next call to reserve, if any."""
        now = self.clock.monotonic()
        first = dict[str, _Waiter]()
        for waiter in line.waiters:
            decline = waiter.decline = self._declined(line.key, waiter.client)
            if waiter.is_gone():
                waiter.fail(ClientGone())
            elif decline and decline.is_final(waiter.deadline - now):
                waiter.fail(decline_error(decline.answer, line.key))
            elif decline is None and not waiter.granted.done():
                first.setdefault(waiter.client, waiter)
        line.waiters = [waiter for waiter in line.waiters if not waiter.granted.done()]
        return min(first.values(), key=lambda waiter: used[waiter.client], default=None)

    def _declined(self, key: OrganizationKey, client: str) -> _Decline | None:
        now = self.clock.monotonic()
        known = (self._declines.get((key, sharer)) for sharer in (None, client))
        return next((decline for decline in known if decline and now < decline.until), None)

    async def _until_changed(self, line: _Line) -> None:
        """Wait until calls arrive or end, a deadline passes, or a declined call can be retried."""
        if not line.waiters:
            return
        times = [waiter.deadline for waiter in line.waiters]
        times += [waiter.decline.until for waiter in line.waiters if waiter.decline]
        seconds = min(LOOK_SECONDS, max(0.0, min(times) - self.clock.monotonic()))
        pause = asyncio.ensure_future(self.clock.sleep(seconds))
        changed = asyncio.ensure_future(line.changed.wait())
        try:
            await asyncio.wait({pause, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            changed.cancel()
