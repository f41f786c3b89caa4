"""Queues the gateway's clients, with a queue ("line") per organization and process.

Each line is owned by a task: only this task asks the ledger, and grants, declines, or removes
calls. A waiting call is only a future, so the line stays consistent however the call ends. The next
call comes from the client with the fewest slots in the current minute; if clients are equal, the
oldest call is next.

The line remembers a declined call until the time that the ledger named, but for at most a second,
because another process, a new plan, or a probe may free a slot.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import structlog

from bot.errors import GatehouseError
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard, as_error
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import Blocked, Full
from bot.quotas.store import accounts
from bot.quotas.store.ledger import NotNow, Reservation
from bot.services.calls import GATEWAY, CallCause
from bot.services.http import Permit
from bot.tasks import Watchdog

log = structlog.get_logger(__name__)

# Interval for checking that a waiting client is still connected.
LOOK_SECONDS = 0.5
BELIEVED_SECONDS = 1.0
# Poll, because calls that end in other processes free their slots without notification.
BUSY_SECONDS = 0.1
AFTER_FREE_SECONDS = 0.002
# A line makes progress at least every half second; this allows for a slow database.
LONGEST_STANDSTILL_SECONDS = 30.0


class ClientGone(GatehouseError):
    """The client closed its connection before its call was sent."""

    outcome = "client_gone"


class Stopping(GatehouseError):
    """The program is stopping, so waiting calls are turned away."""

    outcome = "stopping"


@dataclass(frozen=True)
class Wait:
    """A call that waits a limited number of seconds for its turn."""

    key: OrganizationKey
    client: str
    seconds: float
    is_gone: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class _Decline:
    answer: NotNow
    at: float
    until: float

    @property
    def is_for_the_day(self) -> bool:
        reason = self.answer.reason
        return isinstance(reason, Full) and reason.kind is LimitKind.DAY

    def error(self, key: OrganizationKey, now: float) -> GatehouseError:
        return as_error(replace(self.answer, now=self.answer.now + now - self.at), key)


@dataclass(eq=False)
class _Waiter:
    wait: Wait
    deadline: float
    granted: "asyncio.Future[Reservation]"
    decline: _Decline | None = None

    def fail(self, error: Exception) -> None:
        if not self.granted.done():
            self.granted.set_exception(error)


@dataclass(eq=False)
class _Line:
    key: OrganizationKey
    waiters: list[_Waiter] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Turns:
    """Gives each client its turn; `shares` has each client's share by name."""

    def __init__(self, guard: Guard, shares: Mapping[str, float], watchdog: Watchdog) -> None:
        self.guard = guard
        self.clock = guard.clock
        self._shares = dict(shares)
        self._watchdog = watchdog
        self._lines: dict[OrganizationKey, _Line] = {}
        # By organization, and also by client if only the client's share is used up.
        self._declines: dict[tuple[OrganizationKey, str | None], _Decline] = {}
        self._is_stopping = False
        # Lines ask in parallel to keep organizations from waiting for each other, but use at most
        # half of the database connections, to leave the rest for people.
        self._asking = asyncio.Semaphore(max(1, guard.database.pool_size // 2))

    @asynccontextmanager
    async def call(self, wait: Wait) -> AsyncIterator[Permit]:
        """Wait for the call's turn, then make the call."""
        reservation = await self._take(wait)
        try:
            async with self.guard.granted(wait.key, _cause(wait.client), reservation) as call:
                yield call
        finally:
            # The answer may have freed a slot earlier than expected, so ask the ledger again.
            for client in (None, wait.client):
                self._declines.pop((wait.key, client), None)
            if wait.key in self._lines:
                self._lines[wait.key].changed.set()

    def stop(self) -> None:
        """Turn away all waiting calls."""
        self._is_stopping = True
        for line in self._lines.values():
            self._send_away(line)

    @property
    def waiting(self) -> Counter[str]:
        """Count the calls waiting in this process, by client."""
        lines = self._lines.values()
        return Counter(waiter.wait.client for line in lines for waiter in line.waiters)

    async def _take(self, wait: Wait) -> Reservation:
        if wait.is_gone():
            raise ClientGone("The client closed its connection.")
        decline, now = self._declined(wait), self.clock.monotonic()
        if decline is not None and (wait.seconds <= 0 or decline.is_for_the_day):
            raise decline.error(wait.key, now)
        granted: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        line = self._lines.get(wait.key)
        if line is None:
            line = self._lines[wait.key] = _Line(wait.key)
            self.guard.tasks.start(self._serve(line), f"turns {wait.key}")
        line.waiters.append(_Waiter(wait, now + wait.seconds, granted))
        line.changed.set()
        try:
            return await granted
        except asyncio.CancelledError:
            # The call was granted just as the client stopped waiting.
            if not granted.cancelled() and granted.exception() is None:
                self.guard.tasks.start(self.guard.give_back(granted.result()), "give back")
            raise

    async def _serve(self, line: _Line) -> None:
        with self._watchdog.watch(f"gateway line {line.key}", LONGEST_STANDSTILL_SECONDS) as move:
            try:
                while line.waiters and not self._is_stopping:
                    move()
                    line.changed.clear()
                    await self._grant(line)
                    now = self.clock.monotonic()
                    for waiter in line.waiters:
                        decline = waiter.decline
                        if decline and (waiter.deadline <= now or decline.is_for_the_day):
                            waiter.fail(decline.error(line.key, now))
                    self._tidy(line)
                    if line.waiters:
                        await self._until_changed(line, now)
            except Exception as error:
                if not isinstance(error, GatehouseError):
                    log.exception("turns.broken", key=str(line.key))
                for waiter in line.waiters:
                    waiter.fail(error)
            finally:
                self._send_away(line)
                del self._lines[line.key]

    async def _grant(self, line: _Line) -> None:
        """Grant the calls that fit. The remaining calls have been declined for now."""
        used: Counter[str] | None = None
        while waiter := self._next(line, used or Counter()):
            if used is None and len({waiter.wait.client for waiter in line.waiters}) > 1:
                async with self._asking, self.guard.database.read_only() as tx:
                    used = await accounts.minute_by_client(tx, line.key)
                continue
            wait = waiter.wait
            async with self._asking:
                result = await self.guard.reserve(
                    wait.key, _cause(wait.client), self._shares.get(wait.client, 1.0)
                )
            if isinstance(result, NotNow):
                self._remember(wait, result)
            elif waiter.granted.done():
                await self.guard.give_back(result)
            else:
                waiter.granted.set_result(result)
                if used is not None:
                    used[wait.client] += 1

    def _next(self, line: _Line, used: Counter[str]) -> _Waiter | None:
        self._tidy(line)
        first: dict[str, _Waiter] = {}
        for waiter in line.waiters:
            waiter.decline = self._declined(waiter.wait)
            if waiter.decline is None:
                first.setdefault(waiter.wait.client, waiter)
        return min(first.values(), key=lambda waiter: used[waiter.wait.client], default=None)

    def _tidy(self, line: _Line) -> None:
        for waiter in line.waiters:
            if waiter.wait.is_gone():
                waiter.fail(ClientGone("The client closed its connection."))
        line.waiters = [waiter for waiter in line.waiters if not waiter.granted.done()]

    def _remember(self, wait: Wait, answer: NotNow) -> None:
        reason, now = answer.reason, self.clock.monotonic()
        if isinstance(reason, Blocked):
            seconds = max(reason.until - answer.now, BUSY_SECONDS)
        elif reason.kind is LimitKind.CONCURRENT:
            seconds = BUSY_SECONDS
        else:
            free_at = reason.free_at or answer.now
            seconds = max(free_at - answer.now, 0.0) + AFTER_FREE_SECONDS
        is_share = isinstance(reason, Full) and reason.is_share
        decline = _Decline(answer, now, now + min(BELIEVED_SECONDS, seconds))
        self._declines[wait.key, wait.client if is_share else None] = decline

    def _declined(self, wait: Wait) -> _Decline | None:
        now = self.clock.monotonic()
        known = (self._declines.get((wait.key, client)) for client in (None, wait.client))
        return next((decline for decline in known if decline and now < decline.until), None)

    async def _until_changed(self, line: _Line, now: float) -> None:
        """Wait for a change, a deadline, or a decline's expiry."""
        times = [waiter.deadline for waiter in line.waiters]
        times += [waiter.decline.until for waiter in line.waiters if waiter.decline]
        pause = self.clock.sleep(min(LOOK_SECONDS, max(0.0, min(times) - now)))
        waits = [asyncio.ensure_future(line.changed.wait()), asyncio.ensure_future(pause)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _send_away(self, line: _Line) -> None:
        for waiter in line.waiters:
            waiter.fail(Stopping("Gatehouse is being restarted. Nothing was sent."))
        line.changed.set()


def _cause(client: str) -> CallCause:
    return CallCause(GATEWAY, background=True, client=client)
