"""Simulates services, callers, processes and a network in virtual time."""

import heapq
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import GRACE_SECONDS, NotNow
from bot.quotas.store.accounts import UNSENT
from bot.quotas.tables import quota_calls
from bot.services.calls import CallClass
from tests.simulation.ledgers import Ledger


class FixedWindow:
    """Limits the number of calls in each minute.

    A new minute starts `phase` seconds after each full minute on the clock.
    """

    def __init__(self, limit: int, phase: float) -> None:
        self._limit, self._phase = limit, phase
        self._window, self._count = -1, 0

    def accepts(self, now: float) -> bool:
        window = int((now - self._phase) // 60.0)
        if window != self._window:
            self._window, self._count = window, 0
        self._count += 1
        return self._count <= self._limit


class SlidingLog:
    """Limits the number of calls in the last 60 seconds.

    A call that arrived exactly 60 seconds ago still counts.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._arrivals: deque[float] = deque()

    def accepts(self, now: float) -> bool:
        while self._arrivals and self._arrivals[0] < now - 60.0:
            self._arrivals.popleft()
        self._arrivals.append(now)
        return len(self._arrivals) <= self._limit


@dataclass
class Service:
    """Simulates an organization that has rate limits and a concurrency limit."""

    rules: list[FixedWindow | SlidingLog]
    concurrent: int
    arrivals: list[float] = field(default_factory=list)
    refused: int = 0
    at_work: int = 0
    peak: int = 0

    def arrives(self, now: float) -> bool:
        self.arrivals.append(now)
        self.at_work += 1
        self.peak = max(self.peak, self.at_work)
        # Every rule must see every arrival, so this doesn't stop at the first refusal.
        verdicts = [rule.accepts(now) for rule in self.rules]
        accepted = all(verdicts) and self.at_work <= self.concurrent
        self.refused += not accepted
        return accepted

    def leaves(self) -> None:
        self.at_work -= 1


TIMEOUT_SECONDS = 10.0
RESTART_SECONDS = 2.0


async def count_calls(database) -> tuple[int, int]:
    """Return how many calls were sent, and how many of those calls were never settled."""
    async with database.read_only() as tx:
        rows = (await tx.connection.execute(quota_calls.select())).all()
    counted = [row for row in rows if row.slot_free_at != UNSENT]
    hold = TIMEOUT_SECONDS + GRACE_SECONDS - 0.001
    in_doubt = [row for row in counted if row.permit_until - row.reserved_at > hold]
    return len(counted), len(in_doubt)


@dataclass(frozen=True)
class Network:
    """Simulates network delays and the time that the service takes to respond.

    `share` is the fraction of requests and responses that take up to `straggle` seconds longer.
    """

    out: tuple[float, float] = (0.02, 0.4)
    work: tuple[float, float] = (0.03, 0.15)
    straggle: float = 0.0
    share: float = 0.0

    def trip(self, dice: random.Random) -> tuple[float, float, float]:
        return self._way(dice), dice.uniform(*self.work), self._way(dice)

    def _way(self, dice: random.Random) -> float:
        late = dice.uniform(0.4, self.straggle) if dice.random() < self.share else 0.0
        return dice.uniform(*self.out) + late


@dataclass
class Process:
    """Simulates a bot process. If a process is killed, its unfinished calls are never settled."""

    life: int = 0


@dataclass
class Caller:
    """Simulates a caller that repeatedly asks for permission, makes a call, and pauses."""

    process: Process
    call_class: CallClass
    pause: Callable[[], float] = lambda: 0.0
    refusals: list[NotNow] = field(default_factory=list)
    granted: int = 0
    waited: list[float] = field(default_factory=list)
    asked_at: float = 0.0


Handler = Callable[..., Awaitable[None]]


class World:
    """Simulates all calls to one organization. The seed determines all random events."""

    def __init__(self, ledger: Ledger, service: Service, network: Network, seed: int) -> None:
        self.ledger, self.service, self.network = ledger, service, network
        self.dice = random.Random(seed)
        self.now = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Handler, tuple[object, ...]]] = []
        self._waiting: deque[Caller] = deque()
        # The start and end of the service's stall, during which arrivals wait.
        self.standstill = (0.0, 0.0)
        # True if the service counts the waiting arrivals only at the end of the stall.
        self.counts_late = False

    def at(self, when: float, handler: Handler, *args: object) -> None:
        heapq.heappush(self._events, (when, next(self._order), handler, args))

    def start(self, caller: Caller, when: float) -> None:
        self.at(when, self._wish, caller)

    def restart_now_and_then(self, processes: list[Process], every_seconds: float) -> None:
        for process in processes:
            self.at(
                self.now + self.dice.expovariate(1 / every_seconds),
                self._kill,
                process,
                every_seconds,
            )

    async def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, handler, args = heapq.heappop(self._events)
            await handler(*args)
        self.now = until

    async def _wish(self, caller: Caller) -> None:
        caller.asked_at = self.now
        await self._ask(caller)

    async def _ask(self, caller: Caller) -> None:
        ticket = await self.ledger.reserve(self.now, caller.call_class)
        if ticket.decision is None:
            caller.granted += 1
            caller.waited.append(self.now - caller.asked_at)
            self._send(caller, ticket.number)
            return
        assert ticket.decision.kind is not None
        if ticket.decision.kind is LimitKind.CONCURRENT:
            self._waiting.append(caller)
            self.at(ticket.decision.free_at, self._wake, caller)
            return
        caller.refusals.append(ticket.decision)
        self.at(max(self.now, ticket.decision.free_at), self._ask, caller)

    def _send(self, caller: Caller, number: int) -> None:
        out, work, back = self.network.trip(self.dice)
        begins, ends = self.standstill
        if begins <= self.now + out < ends:
            waits = ends - self.now - out
            out, work = (out + waits, work) if self.counts_late else (out, work + waits)
        self.at(self.now + out, self._arrive, work)
        life = caller.process.life
        if out + work + back < TIMEOUT_SECONDS:
            self.at(self.now + out + work + back, self._answered, caller, life, number)
        else:
            self.at(self.now + TIMEOUT_SECONDS, self._next, caller, life)

    async def _arrive(self, work: float) -> None:
        self.service.arrives(self.now)
        self.at(self.now + work, self._leave)

    async def _leave(self) -> None:
        self.service.leaves()

    async def _answered(self, caller: Caller, life: int, number: int) -> None:
        if life == caller.process.life:
            await self.ledger.settle(number, self.now, self.now)
            if self._waiting:
                await self._ask(self._waiting.popleft())
        await self._next(caller, life)

    async def _next(self, caller: Caller, life: int) -> None:
        alive = life == caller.process.life
        self.at(self.now + (caller.pause() if alive else RESTART_SECONDS), self._wish, caller)

    async def _wake(self, caller: Caller) -> None:
        if caller in self._waiting:
            self._waiting.remove(caller)
            await self._ask(caller)

    async def _kill(self, process: Process, every_seconds: float) -> None:
        process.life += 1
        self.at(
            self.now + self.dice.expovariate(1 / every_seconds), self._kill, process, every_seconds
        )
