"""Tests that Gatehouse and another program can share a per-minute limit without many refusals."""

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import pytest

from bot.quotas.rules.limits import (
    Limit,
    LimitKind,
    Limits,
    lowered,
)
from bot.quotas.rules.quota import BlockCode, Blocks, InUse, decide
from bot.services.calls import CallClass
from tests.simulation.ledgers import HeldCall, Holdings
from tests.simulation.world import SlidingLog

HOUR, BLOCK_SECONDS, CALLERS = 3600.0, 60.0, 8
NO_DAY = 10**9
LIMITS = Limits(100, NO_DAY, 10)
OURS, THEIRS = "ours", "theirs"


@dataclass
class Organization:
    """Simulates an organization that refuses all calls for a minute once the limit is exceeded."""

    log: SlidingLog = field(default_factory=lambda: SlidingLog(LIMITS.minute))
    blocked_until: float = 0.0

    def accepts(self, now: float) -> bool:
        if now < self.blocked_until:
            return False
        accepted = self.log.accepts(now)
        if not accepted:
            self.blocked_until = now + BLOCK_SECONDS
        return accepted


class Simulation:
    """Simulates the bot's background calls and probes, and another program's calls."""

    def __init__(self, foreign_a_minute: float, seed: int) -> None:
        self.dice, self.now, self.events, self.order = random.Random(seed), 0.0, [], count()
        self.organization, self.blocks = Organization(), Blocks()
        self.held: list[HeldCall] = []
        self.lowered: Limit | None = None
        self.every = 60.0 / foreign_a_minute
        self.refused: Counter[tuple[str, int]] = Counter()
        self.made: Counter[tuple[str, int]] = Counter()

    def run(self, seconds: float) -> None:
        self.at(0.0, self.foreign)
        for number in range(CALLERS):
            self.at(number * 0.1, self.ask)
        while self.events[0][0] < seconds:
            self.now, _, act = heapq.heappop(self.events)
            act()

    def at(self, when: float, act) -> None:
        heapq.heappush(self.events, (when, next(self.order), act))

    def foreign(self) -> None:
        self.count(THEIRS, self.organization.accepts(self.now))
        self.at(self.now + self.dice.expovariate(1 / self.every), self.foreign)

    def count(self, whose: str, accepted: bool) -> None:
        made = self.made if accepted else self.refused
        made[whose, int(self.now // HOUR)] += 1

    def ask(self) -> None:
        self.held = [call for call in self.held if call.slot_free_at > self.now]
        held = Holdings.of(self.held, self.now)
        limits = LIMITS.in_force()
        if self.lowered and self.now < self.lowered.until:
            limits.append(self.lowered)
        decision = decide(
            CallClass.BACKGROUND,
            self.now,
            limits=limits,
            in_use=InUse(len(held.slots), len(held.permits)),
            blocks=self.blocks,
        )
        if decision is None:
            self.call(probe=False, used=len(held.slots) + 1)
        else:
            self.at(self.now + 1.0, self.ask)

    def call(self, *, probe: bool, used: int) -> None:
        trip = self.dice.uniform(0.1, 0.5)
        self.held.append(HeldCall.answered(self.now + trip, self.now + trip))

        def arrive() -> None:
            accepted = self.organization.accepts(self.now)
            self.count(OURS, accepted)
            if not accepted:
                if not self.blocks:
                    self.lowered = lowered(
                        self.lowered, LimitKind.MINUTE, beside=0, used=used, at=self.now
                    )
                self.blocks = self.blocks.refused(BlockCode.MINUTE, self.now, probe=probe)
                self.at(self.blocks.longest.until, self.probe)
            elif probe:
                self.blocks = Blocks()

        self.at(self.now + trip / 2, arrive)
        if not probe:
            self.at(self.now + trip, self.ask)

    def probe(self) -> None:
        longest = self.blocks.longest
        if longest is not None and self.now >= longest.until:
            self.call(probe=True, used=1)


@pytest.mark.parametrize(("foreign", "most"), [(10, 4), (50, 10)])
def test_blocks_that_another_program_causes_are_learned_from(foreign, most):
    simulation = Simulation(foreign, seed=foreign)
    simulation.run(2 * HOUR)
    assert simulation.refused[OURS, 1] <= most
    # The other program gets nearly all of its calls, and the bot uses the rest.
    assert simulation.made[THEIRS, 1] >= 0.9 * foreign * 60
    assert simulation.made[OURS, 1] >= 0.5 * (80 - foreign) * 60
