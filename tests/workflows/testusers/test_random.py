"""Whatever people, faults and crashes do: the list is what approvals and outside edits say.

Short days of people who come one at a time are Hypothesis's, which finds the shortest that fails.
Rough days are of seeds: `ROUGH_DAYS=200` lives more of them than the suite has time for.
"""

import os
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import GatehouseError
from bot.model.testusers.approval import Act, State
from bot.model.testusers.changes import apply_change, difference
from bot.model.testusers.requests import Request
from bot.parsing.testusers import parse_testusers
from bot.service_errors import ServiceFailed, ServiceTimeout
from bot.store import grants, jobs
from bot.store.engine import Database
from bot.workflows.testusers.asking import UNDO_PAUSE
from tests.support.clock import FakeClock
from tests.support.testusers import ADA, OTTO, WELCOME, FakeFlowService, World
from tests.workflows.testusers.rough.days import Days
from tests.workflows.testusers.rough.outside import Crash
from tests.workflows.testusers.rough.plants import PLANTS
from tests.workflows.testusers.rough.scenes import day

ROUGH_DAYS = int(os.environ.get("ROUGH_DAYS", "6"))
PEOPLE = ("+1", "+2", "+3", "+4")
people = st.sampled_from(PEOPLE)
which = st.integers(0, 9)

operations = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(("add", "remove")), people, st.sampled_from((0, 40))),
    st.tuples(st.just("click"), st.sampled_from([Act.APPROVE, Act.APPROVE, *Act]), which),
    st.tuples(st.just("edit"), st.booleans(), people),
    st.tuples(st.just("fault"), st.sampled_from(("read", "post", "lost", "crash", "crash after"))),
    st.tuples(st.just("pass"), st.sampled_from((1, 10, 60))),
)

# One person, whose grant is extended, ended, edited and undone all the time; 0 is the newest.
newest = st.sampled_from((0, 0, 1))
undoing = st.one_of(
    st.tuples(st.just("ask"), st.just("add"), st.just("+1"), st.sampled_from((0, 40, 90))),
    st.tuples(st.just("approve")),
    st.tuples(st.just("approve")),
    st.tuples(st.just("click"), st.just(Act.UNDO), newest),
    st.tuples(st.just("edit"), st.booleans(), st.just("+1")),
    st.tuples(st.just("pass"), st.sampled_from((1, 30, 60))),
)


@dataclass
class WatchedService(FakeFlowService):
    """Checks each update when it comes: nobody comes or goes without an approval or an end."""

    world: "Random | None" = None
    crashes: list[str] = field(default_factory=list)

    async def replace(self, flow_sid, identities, may_send):
        await self.world.check(tuple(self.lists[flow_sid]), tuple(identities))
        if self.crashes and self.crashes[0] == "crash":
            raise Crash(self.crashes.pop())
        answer = await super().replace(flow_sid, identities, may_send)
        if self.crashes:
            raise Crash(self.crashes.pop())
        return answer


class Random:
    """Follows operations, and knows what the list has to be."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.service = WatchedService(world=self)
        self.database, self.clock = database, clock
        self.asked: list[Request] = []
        self.applied: set[str] = set()
        self.ended: set[tuple[str, str]] = set()
        self.expected: list[str] = []
        self.ends: dict[str, datetime | None] = {}
        self.earlier: dict[str, dict[str, datetime | None]] = {}
        self.lives = 0
        self.restart()

    def restart(self) -> None:
        self.lives += 1
        self.world = World(self.database, self.clock, self.service, owner=f"life {self.lives}")

    async def check(self, standing: tuple[str, ...], sent: tuple[str, ...]) -> None:
        """An update does what is approved or over, and keeps all others in their order."""
        change = difference(standing, sent)
        assert apply_change(standing, change) == sent
        stored = [await self.world.stored(one) for one in self.asked]
        approved = [one for one in stored if one.state is State.APPLYING]
        async with self.database.read_only() as tx:
            over = [one.identity for one in await grants.due(tx, WELCOME)]
        assert set(change.additions) <= {p for r in approved for p in r.requested.change.additions}
        # An end that somebody approved may be over by then: an undo that gives back a former end.
        removed = {p for r in approved for p in r.change_at(self.clock.now()).removals}
        assert set(change.removals) <= removed | set(over)

    async def follow(self, operation: tuple) -> None:
        name, *rest = operation
        self.clock.advance(1)
        try:
            await getattr(self, name)(*rest)
            await self.work()
        except GatehouseError:
            pass
        await self.look()

    async def work(self) -> None:
        try:
            await self.world.work()
        except Crash:
            self.clock.advance(jobs.LEASE_SECONDS + 1)
            self.restart()
            await self.work()

    async def ask(self, kind: str, who: str, seconds: int) -> None:
        more = f" for {seconds}s" if seconds and kind == "add" else ""
        command = parse_testusers(f"{kind} welcome {who}{more}")
        asked = await self.world.asking.ask(await self.world.person(OTTO), command)
        self.asked += [asked.request] if asked.request else []

    async def click(self, act: Act, number: int) -> None:
        if not self.asked:
            return
        request = self.asked[-1 - number % len(self.asked)]
        person = await self.world.person(OTTO if act in (Act.CANCEL, Act.UNDO) else ADA)
        if act is Act.UNDO:
            if (await self.world.stored(request)).progress.undo_given_up_at:
                self.clock.advance(UNDO_PAUSE.total_seconds())
            asked = await self.world.asking.undo(person, request.id)
            if asked.request is None or asked.request.id not in {one.id for one in self.asked}:
                self.asked += [asked.request] if asked.request else []
                self.take_back(await self.world.stored(request), asked.request)
        else:
            await self.world.deciding.decide(person, act, request.id, "no")

    async def approve(self) -> None:
        """Approve all that waits."""
        for one in self.asked:
            if (await self.world.stored(one)).state is State.PENDING:
                self.clock.advance(1)
                await self.world.decide(Act.APPROVE, one)

    def take_back(self, undone: Request, undo: Request | None) -> None:
        """An undo asks for nobody to be left of whom was added, and for everybody else's end."""
        done, listed = undone.progress.done, tuple(self.service.lists[WELCOME])
        after = apply_change(listed, undo.requested.change) if undo else listed
        assert not set(done.change.additions) & set(after)
        for one in undone.requested.change.identities:
            earlier = self.earlier[undone.id].get(one)
            is_over = earlier is not None and earlier <= self.clock.now()
            is_back = one in done.change.removals and one not in listed
            if is_back or (one in listed and self.has_moved(undone, one)):
                assert (one in after) is not is_over
                assert is_over or self.end_after(undo, one) == earlier
            elif one in done.already.additions:
                assert (one in after) is (one in listed)

    def has_moved(self, request: Request, one: str) -> bool:
        """Whether the request gave somebody who was there another end than before."""
        end = request.end_for(one, request.progress.done.at)
        was_there = one in request.progress.done.already.additions
        return was_there and self.earlier[request.id].get(one) != end

    def end_after(self, undo: Request | None, one: str) -> datetime | None:
        if undo is None or one not in undo.requested.change.additions:
            return self.ends.get(one)
        return undo.requested.ends.get(one)

    async def edit(self, adds: bool, who: str) -> None:
        for some in (self.service.lists[WELCOME], self.expected):
            if who in some:
                some.remove(who)
            if adds:
                some.append(who)

    async def fault(self, kind: str) -> None:
        down = ServiceFailed("flow", "Down.", status=500)
        lost = ServiceTimeout("flow", "No answer.")
        if kind == "read":
            self.service.read_faults.append(down)
        elif kind == "post":
            self.service.post_faults.append(down)
        elif kind == "lost":
            self.service.lost_answers.append(lost)
        else:
            self.service.crashes = [kind]

    async def _pass(self, seconds: int) -> None:
        self.clock.advance(seconds)

    locals()["pass"] = _pass

    async def look(self) -> None:
        """Take note of what is applied and over now, and hold the list against it."""
        for one in sorted(
            [await self.world.stored(one) for one in self.asked],
            key=lambda one: one.decided_at or one.created_at,
        ):
            if one.state is State.APPLIED and one.id not in self.applied:
                self.applied.add(one.id)
                self.expected = list(apply_change(self.expected, one.requested.change))
                self.earlier[one.id] = dict(self.ends)
                for who in one.requested.change.identities:
                    self.ends.pop(who, None)
                for who in one.requested.change.additions:
                    self.ends[who] = one.end_for(who, one.progress.done.at)
            for end in one.progress.ended:
                if (one.id, end.at.isoformat() + end.identity) not in self.ended:
                    self.ended.add((one.id, end.at.isoformat() + end.identity))
                    self.expected = [who for who in self.expected if who != end.identity]
                    self.ends.pop(end.identity, None)

    async def settle(self) -> None:
        """All is well again: after a while nothing is left to do."""
        self.service.read_faults.clear()
        self.service.post_faults.clear()
        self.service.lost_answers.clear()
        self.service.crashes.clear()
        for _ in range(4):
            self.clock.advance(20)
            await self.work()
            await self.look()
        for one in self.asked:
            assert (await self.world.stored(one)).state is not State.APPLYING
        assert set(self.service.lists[WELCOME]) == set(self.expected)
        async with self.database.read_only() as tx:
            granted = await grants.of_flow(tx, WELCOME)
        assert {one: grant.ends_at for one, grant in granted.items()} == self.ends
        actions = [action for _, action in await self.world.audited()]
        explained = actions.count("flow.changed") + actions.count("flow.change_not_found")
        assert len(self.service.posts) <= explained


async def follow_all(random: Random, steps: list[tuple]) -> tuple[list[str], list[str]]:
    """Who is on the list when all is done, and who has to be."""
    for step in steps:
        await random.follow(step)
    await random.settle()
    return sorted(random.service.lists[WELCOME]), sorted(random.expected)


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> Days:
    return Days(tmp_path_factory.mktemp("days"))


def run_from_empty(days: Days, steps: list[tuple]) -> tuple[list[str], list[str]]:
    return days.run(lambda *parts: follow_all(Random(*parts), steps))


@settings(max_examples=50)
@given(steps=st.lists(operations, min_size=5, max_size=30))
def test_the_list_is_what_approvals_and_outside_edits_say(days, steps) -> None:
    listed, expected = run_from_empty(days, steps)
    assert listed == expected


@settings(max_examples=50)
@given(steps=st.lists(undoing, min_size=8, max_size=20))
def test_an_undo_takes_back_what_was_done_whatever_came_between(days, steps) -> None:
    listed, expected = run_from_empty(days, steps)
    assert listed == expected


def test_an_undo_that_is_approved_after_the_end_it_gives_back_removes(days) -> None:
    asks = [("ask", "add", "+1", seconds) for seconds in (0, 40, 90)]
    undo = [("click", Act.UNDO, 0), ("pass", 30), ("pass", 30), ("approve",)]
    assert run_from_empty(days, [*asks, ("approve",), *undo]) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(ROUGH_DAYS))
def test_cards_grants_and_list_agree_on_rough_days(days, number) -> None:
    assert days.live(day(number))["request.applied"] > 0


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_fault_is_found_in_a_scene(days, plant) -> None:
    with pytest.raises(AssertionError):
        days.live([PLANTS[plant][1]], plant)
