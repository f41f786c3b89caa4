"""The turns of the gateway's clients: who waits, for how long, and who goes next.

Every process has a line for each organization, and all of them see each other's in the database.
One task of each process keeps its places there and lets a call of its own try whenever that is
among the next ones. Whether a call is granted is decided by the ledger alone: the line only says
who may ask.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

import structlog

from bot.background.tasks import Tasks
from bot.dataclass import dataclass
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.quota import Blocked, Full, LimitKind, Terms
from bot.model.turns import ClientTurn, LineStanding, OthersWait, Waiting
from bot.ops.clock import Clock
from bot.store import accounts, gateway_waits
from bot.store.engine import Database
from bot.store.quotas import NotNow, Reservation
from bot.workflows.quotas.declines import as_error
from bot.workflows.quotas.guard import Attempt

log = structlog.get_logger(__name__)

# Places in the database are renewed this often, so that they outlive a slow moment.
LOOK_SECONDS = 0.5
# What another process gives back is not told here.
BUSY_LOOK_SECONDS = 0.1
AFTER_FREE_SECONDS = 0.002
# One client's calls that wait for one organization in one process; more are declined at once.
MOST_WAITING = 100


class ClientGone(GatehouseError):
    """The client closed its connection while it waited."""

    outcome = "client_gone"


class Stopping(GatehouseError):
    """The program stops, and whoever waits is sent away."""

    outcome = "stopping"


@dataclass(frozen=True)
class Wait:
    """A call that wants its turn: for whom, how long it waits, and whether anybody still does."""

    key: OrganizationKey
    client: str
    seconds: float
    is_gone: Callable[[], bool] = lambda: False


@dataclass(eq=False)
class _Waiter:
    """A call in the line of this process."""

    client: str
    ticket: int | None = None
    is_next: asyncio.Event = field(default_factory=asyncio.Event)
    has_tried: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None


@dataclass(eq=False)
class _Line:
    """The calls of this process that wait for an organization, oldest first."""

    waiters: list[_Waiter] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    left: list[int] = field(default_factory=list)
    is_served: bool = False


class Turns:
    """Gives clients their turns.

    Args:
        database: Where all processes see who waits.
        clock: For pauses and for how long a call has waited.
        terms: The plans in force, and when a call is given up.
        shares: Each client's share, by its name.
        tasks: Hold what serves a line.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        terms: Terms,
        shares: Mapping[str, float],
        tasks: Tasks,
    ) -> None:
        self._database = database
        self._clock = clock
        self._terms = terms
        self._shares = dict(shares)
        self._tasks = tasks
        self._lines: dict[OrganizationKey, _Line] = {}
        self._is_stopping = False
        # However many calls clients send at once, people find a connection to the database.
        self._asking = asyncio.Semaphore(max(1, database.pool_size // 2))

    async def take(self, wait: Wait, attempt: Attempt) -> Reservation:
        """Return once the call is granted.

        Raises:
            QuotaExhausted, OrganizationBlocked: There was no room in time.
            ClientGone, Stopping: Nobody waits any more.
            DatabaseUnavailable: Nothing is granted then.
        """
        line = self._lines.get(wait.key)
        if line is None or not line.waiters:
            result = await self._ask(attempt, wait, is_next=False)
            if isinstance(result, Reservation):
                return result
            is_waiting_in_vain = wait.seconds <= 0 or _is_for_the_day(result)
            if is_waiting_in_vain and not isinstance(result.reason, OthersWait):
                raise as_error(result, wait.key)
        if wait.seconds <= 0 or self._is_crowded(wait):
            return await self._at_once(wait, attempt)
        return await self._in_line(wait, attempt)

    async def blocked_for(self, key: OrganizationKey) -> float | None:
        """For how many seconds nobody calls for an organization; None where nothing blocks it.

        Raises:
            DatabaseUnavailable: Nobody knows.
        """
        async with self._database.read_only() as tx:
            account = await accounts.load(tx, key, self._terms)
        block = account.blocks.longest if account is not None else None
        return None if account is None or block is None else block.until - account.now

    def call_ended(self, key: OrganizationKey) -> None:
        """A call of this process is over: there may be room."""
        if key in self._lines:
            self._lines[key].changed.set()

    def stop(self) -> None:
        """Send away whoever waits."""
        self._is_stopping = True
        for line in self._lines.values():
            self._fail_all(line, Stopping("Gatehouse is being restarted. Nothing was sent."))

    @property
    def waiting(self) -> Counter[str]:
        """How many calls of this process wait, by client."""
        return Counter(one.client for line in self._lines.values() for one in line.waiters)

    async def _ask(self, attempt: Attempt, wait: Wait, *, is_next: bool) -> Reservation | NotNow:
        share = self._shares.get(wait.client, 1.0)
        async with self._asking:
            return await attempt(ClientTurn(wait.client, share, is_next))

    def _is_crowded(self, wait: Wait) -> bool:
        line = self._lines.get(wait.key, _Line())
        return sum(one.client == wait.client for one in line.waiters) >= MOST_WAITING

    async def _at_once(self, wait: Wait, attempt: Attempt) -> Reservation:
        """Go now if there is room for more than all who are ahead, or not at all."""
        standing, _ = await self._look(wait.key)
        last = Waiting(1 << 62, wait.client)
        order = self._order(standing, (*standing.waiting, last))
        ahead = order.index(last) if last in order else len(order)
        if ahead < standing.room:
            result = await self._ask(attempt, wait, is_next=True)
            if isinstance(result, Reservation):
                return result
            raise as_error(result, wait.key)
        others = OthersWait(standing.free_at(ahead))
        raise as_error(NotNow(others, standing.now), wait.key)

    def _order(self, standing: LineStanding, waiting: "tuple[Waiting, ...]") -> list[Waiting]:
        return standing.with_line(waiting).next_ones(self._shares)

    async def _in_line(self, wait: Wait, attempt: Attempt) -> Reservation:
        line, waiter = self._lines.setdefault(wait.key, _Line()), _Waiter(wait.client)
        line.waiters.append(waiter)
        line.changed.set()
        if not line.is_served:
            line.is_served = True
            self._tasks.start(self._serve(wait.key, line), f"turns {wait.key}")
        try:
            return await self._until_granted(wait, waiter, attempt)
        finally:
            line.waiters.remove(waiter)
            if waiter.ticket is not None:
                line.left.append(waiter.ticket)
            waiter.has_tried.set()
            line.changed.set()

    async def _until_granted(self, wait: Wait, waiter: _Waiter, attempt: Attempt) -> Reservation:
        deadline = self._clock.monotonic() + wait.seconds
        while True:
            left = deadline - self._clock.monotonic()
            await self._first_of(waiter.is_next, min(left, LOOK_SECONDS))
            if waiter.error is not None:
                raise waiter.error
            if wait.is_gone():
                raise ClientGone("The client closed its connection.")
            if waiter.is_next.is_set():
                result = await self._ask(attempt, wait, is_next=True)
                if isinstance(result, Reservation):
                    return result
                if _is_for_the_day(result):
                    raise as_error(result, wait.key)
                waiter.is_next.clear()
                waiter.has_tried.set()
            elif left <= 0:
                raise await self._too_late(wait, waiter)

    async def _too_late(self, wait: Wait, waiter: _Waiter) -> GatehouseError:
        """Why there was no turn, as of now."""
        standing, reason = await self._look(wait.key)
        if not isinstance(reason, OthersWait):
            return as_error(NotNow(reason, standing.now), wait.key)
        order = standing.next_ones(self._shares)
        tickets = [one.ticket for one in order]
        ahead = tickets.index(waiter.ticket) if waiter.ticket in tickets else len(order)
        others = OthersWait(standing.free_at(ahead))
        return as_error(NotNow(others, standing.now), wait.key)

    async def _serve(self, key: OrganizationKey, line: _Line) -> None:
        """Serve this process's line until nobody is in it."""
        try:
            while line.waiters:
                line.changed.clear()
                await self._keep_places(key, line)
                standing, reason = await self._look(key)
                if not await self._let_try(line, standing, reason):
                    await self._first_of(line.changed, _pause(standing, reason))
        except DatabaseUnavailable as away:
            self._fail_all(line, away)
        except Exception as broken:
            log.exception("turns.broken", key=str(key))
            self._fail_all(line, broken)
        finally:
            line.is_served = False
            if not line.waiters:
                self._lines.pop(key, None)
            await self._give_up_places(line)

    def _fail_all(self, line: _Line, error: Exception) -> None:
        for waiter in line.waiters:
            _fail(waiter, error)

    async def _keep_places(self, key: OrganizationKey, line: _Line) -> None:
        """Write the places of who is new, renew the others, and give up those of who has left."""
        left, line.left = line.left, []
        async with self._database.autocommit() as tx:
            now = (await tx.now()).timestamp()
            if left:
                await gateway_waits.leave(tx, left)
            known = {one.ticket: one.client for one in line.waiters if one.ticket is not None}
            if known:
                await gateway_waits.renew(tx, key, known, now)
            for waiter in [one for one in line.waiters if one.ticket is None]:
                waiter.ticket = await gateway_waits.join(tx, key, waiter.client, now)
                if waiter not in line.waiters:
                    line.left.append(waiter.ticket)

    async def _give_up_places(self, line: _Line) -> None:
        left, line.left = line.left, []
        if left:
            # Those that stay are over in a moment by themselves.
            with suppress(DatabaseUnavailable):
                async with self._database.autocommit() as tx:
                    await gateway_waits.leave(tx, left)

    async def _look(self, key: OrganizationKey) -> tuple[LineStanding, Full | Blocked | OthersWait]:
        """How the line stands, and what it waits for."""
        async with self._asking, self._database.read_only() as tx:
            account = await accounts.load(tx, key, self._terms)
            assert account is not None  # noqa: S101 - whoever waits has asked before
            standing = await gateway_waits.standing(tx, account)
        block = account.blocks.longest
        if block is not None:
            until = max(block.until, account.blocks.probing_until)
            return standing, Blocked(block.code, until)
        return standing, standing.full(account.day.resets_at) or OthersWait()

    async def _let_try(
        self, line: _Line, standing: LineStanding, reason: Full | Blocked | OthersWait
    ) -> bool:
        """Let those of this process try that are among the next ones; whether any was let."""
        if isinstance(reason, Blocked):
            return False
        next_tickets = [one.ticket for one in standing.next_ones(self._shares)][: standing.room]
        by_ticket = {one.ticket: one for one in line.waiters}
        waiters = [by_ticket[ticket] for ticket in next_tickets if ticket in by_ticket]
        for waiter in waiters:
            waiter.has_tried.clear()
            waiter.is_next.set()
            await waiter.has_tried.wait()
        return any(waiter not in line.waiters for waiter in waiters)

    async def _first_of(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event, but no longer than so many seconds."""
        if event.is_set():
            return
        waiting: set[asyncio.Task[Any]] = {
            asyncio.ensure_future(event.wait()),
            asyncio.ensure_future(self._clock.sleep(max(seconds, 0.0))),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


def _is_for_the_day(result: NotNow) -> bool:
    """Whether nobody waits long enough for it."""
    return isinstance(result.reason, Full) and result.reason.kind is LimitKind.DAY


def _fail(waiter: _Waiter, error: Exception) -> None:
    waiter.error = error
    waiter.is_next.set()


def _pause(standing: LineStanding, reason: Full | Blocked | OthersWait) -> float:
    """How long nothing can change but by what this process hears of."""
    if isinstance(reason, Blocked):
        return min(LOOK_SECONDS, max(reason.until - standing.now, BUSY_LOOK_SECONDS))
    if isinstance(reason, Full) and reason.kind is not LimitKind.CONCURRENT:
        free_in = (reason.free_at or standing.now) - standing.now
        return min(LOOK_SECONDS, max(free_in, 0.0) + AFTER_FREE_SECONDS)
    return BUSY_LOOK_SECONDS
