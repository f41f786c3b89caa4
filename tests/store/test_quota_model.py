"""Tests that the quota ledger in the database makes the same decisions as a simple model."""

import random

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LIMITS, Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import ledger as quotas
from bot.quotas.store.ledger import TIDY_JOB, CallRequest, Reservation
from bot.services.calls import TOTAL_SECONDS, CallCause, CallClass
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from tests.simulation.ledgers import ModelLedger

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE)
PAUSES = [0.0, 0.1, 1.0, 14.0, 16.0, 45.0, 61.0, 76.0, 1800.0, 20_000.0]


class Both:
    """Asks the database and the model the same questions, and compares their answers."""

    def __init__(self, database, clock) -> None:
        self._database, self._clock = database, clock
        self._model = ModelLedger(LIMITS[Plan.FREE], TOTAL_SECONDS)
        self._open: list[tuple[Reservation, int]] = []
        self.seen: set[str] = set()

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def ask(self, call_class: CallClass) -> None:
        cause = CallCause("list", background=call_class is CallClass.BACKGROUND)
        request = CallRequest(KEY, cause, TERMS)
        async with self._database.autocommit() as tx:
            ours = await quotas.reserve(tx, request, 0.0, lambda *_: True)
        ticket = await self._model.reserve(self._now(), call_class)
        if isinstance(ours, Reservation):
            assert (ticket.decision, ours.account.in_use) == (None, ticket.in_use)
            assert ours.number == ticket.number
            self._open.append((ours, ticket.number))
        else:
            assert ours.limits == ticket.decision.limits
            assert ours.free_at == pytest.approx(ticket.decision.free_at, abs=1e-4)
            self.seen.add(ours.kind.value)

    async def settle(self, dice) -> None:
        if not self._open:
            return
        reservation, number = self._open.pop(dice.randrange(len(self._open)))
        seconds = dice.choice([0.0, 0.5, 3.0])
        async with self._database.autocommit() as tx:
            await quotas.settle(tx, [(reservation, seconds)])
        await self._model.settle(number, self._now() - seconds, self._now())

    async def make_many(self, count: int, call_class: CallClass) -> None:
        for _ in range(count):
            await self.ask(call_class)
            if self._open:
                await self.settle(random.Random(0))


@pytest.mark.slow
async def test_the_database_decides_as_the_model(database, clock):
    dice = random.Random(0)
    both = Both(database, clock)
    for _ in range(24):
        call_class = dice.choice([CallClass.PERSON, CallClass.BACKGROUND])
        step = dice.random()
        if step < 0.4:
            for _ in range(dice.randint(1, 7)):
                await both.ask(call_class)
        elif step < 0.6:
            await both.settle(dice)
        elif step < 0.8:
            await both.make_many(dice.randint(40, 110), call_class)
        else:
            job = Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, clock.now())
            await quotas.tidy(job, Lease(database, "", job))
        clock.advance(dice.choice(PAUSES))
    assert both.seen >= {"minute", "concurrent"}
