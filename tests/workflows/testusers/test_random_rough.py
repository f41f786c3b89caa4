"""Whatever a rough service, late POSTs, restarts and settings do: cards, grants and list agree.

Here nobody edits the list by hand, so what the audit says was applied and ended has to be exactly
what is on the list in the end. Each day has every scene in which something went wrong once, in any
order, and any other operations between them. `ROUGH_DAYS=200` tries more days than the suite has
time for.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bot.errors import Conflict, GatehouseError
from bot.model.testusers.approval import Act, State
from bot.model.testusers.changes import Change, difference
from bot.model.testusers.requests import Request
from bot.parsing.testusers import parse_testusers
from bot.service_errors import (
    PermissionMissing,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.store import flows, grants, jobs, requests
from bot.store.engine import Database
from tests.support.clock import FakeClock
from tests.support.steady import run_steadily
from tests.support.testusers import (
    ADA,
    OTTO,
    WELCOME,
    FakeFlowService,
    World,
    default_rules,
)
from tests.workflows.testusers.test_random import Crash, migrated_copy, unhurried

PEOPLE = ("+1", "+2", "+3", "+4")
# As late as a POST may be carried out and still be put right.
LATEST_SECONDS = 45
FAULTS = {
    "502": lambda: ServiceFailed("flow", "Bad gateway.", status=502),
    "refused connection": lambda: ServiceUnreachable("flow", "Not there.", sent=False),
    "403": lambda: PermissionMissing("flow", "Not allowed."),
}
some = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=3, unique=True)
kinds, seconds = st.sampled_from(("add", "add", "remove")), st.sampled_from((0, 20, 90))
# Asked and approved at once; most days are made of these.
change = st.tuples(st.just("change"), kinds, some, seconds)
late = st.tuples(st.just("late"))
pass_by = st.tuples(st.just("pass_by"), st.sampled_from((1, 5, 30)))
operations = st.one_of(
    *(change, change, change, late, late, pass_by, pass_by),
    st.tuples(st.just("ask"), kinds, some, seconds),
    st.tuples(st.just("approve")),
    st.tuples(st.just("click"), st.sampled_from((Act.RETRY, Act.UNDO)), st.integers(0, 3)),
    st.tuples(st.just("land")),
    st.tuples(st.just("read_fails"), st.integers(1, 5)),
    st.tuples(st.just("post_fails"), st.sampled_from(sorted(FAULTS)), st.integers(1, 4)),
    st.tuples(st.just("lose_answer")),
    st.tuples(st.just("forget"), st.sampled_from(("", "+2", "+3"))),
    st.tuples(st.just("refuse_removal"), st.sampled_from(("", "+1"))),
    st.tuples(st.just("crash"), st.booleans()),
    st.tuples(st.just("restart"), st.sampled_from((1, 2))),
)
SCENES = (
    "late_post",
    "answer_unknown",
    "third_try_lands",
    "stored_in_part",
    "stored_in_part_for_a_while",
    "one_spoils",
    "end_refused",
    "extension_waits",
    "undo_late",
    "quorum_lowered",
)
DAYS = int(os.environ.get("ROUGH_DAYS", "3"))
# In twenty minutes, with pauses from 10 s to 10 min.
MOST_READS, MOST_ENTRIES = 14, 8


@st.composite
def days(draw: st.DrawFn) -> list[tuple]:
    """Every scene with somebody, and operations between them."""
    steps: list[tuple] = []
    for scene in draw(st.permutations(SCENES)):
        steps += draw(st.lists(operations, max_size=2))
        steps.append((scene, draw(st.sampled_from(PEOPLE))))
    if draw(st.booleans()):
        steps.append(("retry_what_failed_in_part",))
    return steps


@dataclass
class RoughService(FakeFlowService):
    """Watches each update: nobody is taken off the list whom an approved request wants there."""

    rough: "Rough | None" = None
    crash: str = ""
    forgets: str = ""
    keeps: str = ""
    fails_with: str = ""
    sent_at: list[float] = field(default_factory=list)
    seen: tuple[str, ...] | None = None

    async def read(self, flow_sid):
        self.seen = None
        self.seen = tuple(await super().read(flow_sid))
        return list(self.seen)

    async def replace(self, flow_sid, identities):
        if flow_sid in self.lists:
            await self.rough.check(self.lists[flow_sid], identities)
        if self.crash == "before":
            self.crash = ""
            raise Crash
        if self.keeps in self.lists.get(flow_sid, ()) and self.keeps not in identities:
            raise ServiceRefused("flow", "Not that one.", status=400)
        if self.fails_with in identities:
            raise ServiceFailed("flow", "Not with that one.", status=502)
        before = len(self.in_the_air)
        try:
            answer = await super().replace(flow_sid, [x for x in identities if x != self.forgets])
        finally:
            self.sent_at += [self.rough.seconds()] * (len(self.in_the_air) - before)
        if self.crash:
            self.crash = ""
            raise Crash
        return answer


def is_so(change: Change, listed: Sequence[str]) -> bool:
    """Whether the list is as a change wants it."""
    return {*change.additions} <= {*listed} and not {*change.removals} & {*listed}


class WatchedWorld(World):
    """Holds each run of a job to this: no request fails that is true on the list it has read."""

    async def run(self, job):
        before = await self._failed()
        await super().run(job)
        for one in await self._failed() - before if self.service.seen is not None else ():
            request = await self._load(one)
            change = request.change_at(self.clock.now())
            assert not is_so(change, self.service.seen), f"{change} is true, and called failed"

    async def _failed(self) -> set[str]:
        async with self.database.read_only() as tx:
            return set(await requests.ids_in(tx, [State.FAILED]))

    async def _load(self, request_id: str) -> Request:
        async with self.database.read_only() as tx:
            return await requests.load(tx, request_id)


class Rough:
    """Follows operations, and knows what has to be true whenever all is quiet."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database, self.clock = database, clock
        self.service = RoughService(rough=self)
        self.asked: list[Request] = []
        self.lives, self.needed = 0, 1
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        rules = default_rules(approvals_needed=self.needed)
        owner = f"life {self.lives}"
        self.world = WatchedWorld(self.database, self.clock, self.service, rules, owner=owner)

    def seconds(self) -> float:
        return self.clock.now().timestamp()

    async def stored(self) -> list[Request]:
        return [await self.world.stored(one) for one in self.asked]

    async def check(self, standing, sent) -> None:
        gone = set(difference(standing, sent).removals)
        approved = [one for one in await self.stored() if one.state is State.APPLYING]
        wanted = {who for one in approved for who in one.change_at(self.clock.now()).additions} - {
            who for one in approved for who in one.change_at(self.clock.now()).removals
        }
        assert not gone & wanted, f"{gone & wanted} removed while an approved request wants them"

    async def follow(self, operation: tuple) -> None:
        name, *rest = operation
        await self.advance(1)
        with suppress(GatehouseError):
            await getattr(self, name)(*rest)
        await self.work()

    async def work(self) -> None:
        try:
            await self.world.work()
        except Crash:
            await self.advance(jobs.LEASE_SECONDS + 1)
            self.begin()
            await self.work()

    async def advance(self, seconds: float) -> None:
        """Let time pass; no POST is carried out later than it may be."""
        lands_in = min(self.service.sent_at, default=self.seconds()) + LATEST_SECONDS
        first = lands_in - self.seconds()
        if self.service.sent_at and first < seconds:
            self.clock.advance(max(0.0, first))
            await self.land()
            seconds -= max(0.0, first)
        self.clock.advance(seconds)

    async def pass_by(self, seconds: int) -> None:
        while seconds > 0:
            await self.advance(min(5, seconds))
            await self.work()
            seconds -= 5

    async def ask(self, kind: str, who: list[str], seconds: int) -> None:
        more = f" for {seconds}s" if seconds and kind == "add" else ""
        command = parse_testusers(f"{kind} welcome {' '.join(who)}{more}")
        asked = await self.world.asking.ask(await self.world.person(OTTO), command)
        self.asked += [asked.request] if asked.request else []

    async def change(self, kind: str, who: list[str], seconds: int) -> None:
        await self.ask(kind, who, seconds)
        if self.asked and (await self.world.stored(self.asked[-1])).state is State.PENDING:
            await self.world.decide(Act.APPROVE, self.asked[-1], ADA)

    async def seconds_pass(self, seconds: int) -> None:
        for _ in range(seconds):
            await self.advance(1)
            await self.work()

    async def calm(self) -> None:
        """The service does what it is asked to from now on, and what was sent has arrived."""
        service = self.service
        service.read_faults.clear()
        service.post_faults.clear()
        service.lost_answers.clear()
        service.late, service.crash, service.forgets, service.keeps = 0, "", "", ""
        service.fails_with = ""
        await self.land()

    async def let_in(self, who: str, seconds: int) -> None:
        """Let somebody in for a time, on a calm service."""
        await self.restart(1)
        await self.calm()
        await self.pass_by(5)
        await self.change("add", [who], seconds)
        await self.work()

    async def late_post(self, who: str) -> None:
        """A POST is carried out after the next change was applied."""
        await self.calm()
        await self.late()
        await self.change("remove" if who in self.service.lists[WELCOME] else "add", [who], 0)
        await self.work()
        others = [one for one in PEOPLE if one != who and one not in self.service.lists[WELCOME]]
        await self.change("add", others or ["+5"], 0)
        await self.seconds_pass(2)
        await self.land()
        await self.pass_by(10)
        await self.agrees()

    async def agrees(self) -> None:
        """What was asked last is true if it is called applied, and not if it failed."""
        request = await self.world.stored(self.asked[-1])
        listed = self.service.lists[WELCOME]
        if request.state in (State.APPLIED, State.FAILED):
            is_applied = request.state is State.APPLIED
            assert is_so(request.requested.change, listed) is is_applied, (request, listed)

    async def try_twice_in_vain(self, who: str) -> None:
        """Ask for somebody who is not there; the third POST is carried out, and not answered."""
        await self.restart(1)
        await self.calm()
        if who in self.service.lists[WELCOME]:
            await self.change("remove", [who], 0)
            await self.pass_by(5)
        await self.post_fails("502", 2)
        await self.late()
        await self.change("add", [who], 600)
        await self.work()
        await self.seconds_pass(1)
        await self.advance(3)
        await self.work()
        await self.land()

    async def answer_unknown(self, who: str) -> None:
        """Nobody can look at the list when the tries are over."""
        await self.try_twice_in_vain(who)
        await self.read_fails(3)
        for seconds in (4, 4, 4, 40, 40):
            await self.advance(seconds)
            await self.work()
        await self.agrees()

    async def third_try_lands(self, who: str) -> None:
        """All tries are over when the list is looked at, and it is as it should be."""
        await self.try_twice_in_vain(who)
        await self.seconds_pass(5)

    async def stored_in_part(self, who: str, seconds: int = 0) -> None:
        """The service drops one of several people."""
        await self.restart(1)
        await self.calm()
        await self.change("remove", list(PEOPLE), 0)
        await self.pass_by(5)
        await self.forget(who)
        await self.change("add", list(PEOPLE), seconds)
        await self.seconds_pass(6)
        await self.agrees()

    async def stored_in_part_for_a_while(self, who: str) -> None:
        """The same, and nobody tries again until the time is over of those who got in."""
        await self.stored_in_part(who, 90)
        await self.pass_by(100)

    async def one_spoils(self, who: str) -> None:
        """The service fails whenever somebody is on the list; others get in all the same."""
        await self.restart(1)
        await self.calm()
        await self.change("remove", list(PEOPLE), 0)
        await self.pass_by(5)
        if self.service.lists[WELCOME] == [] and await self.nobody_is_applying():
            self.service.fails_with = who
            others = [one for one in PEOPLE if one != who]
            await self.change("add", [who], 0)
            await self.change("add", others, 90)
            await self.seconds_pass(6)
            assert (await self.world.stored(self.asked[-1])).state is State.APPLIED
            assert set(self.service.lists[WELCOME]) == set(others)

    async def nobody_is_applying(self) -> bool:
        return State.APPLYING not in {one.state for one in await self.stored()}

    async def end_refused(self, who: str) -> None:
        """An end cannot be made for a long time, and then somebody extends it."""
        await self.let_in(who, 20)
        await self.refuse_removal(who)
        await self.advance(90)
        await self.work()
        reads, entries = self.service.reads, len(await self.world.audited())
        for _ in range(20):
            await self.advance(60)
            await self.work()
        assert self.service.reads - reads <= MOST_READS
        assert len(await self.world.audited()) - entries <= MOST_ENTRIES
        await self.change("add", [who], 90)
        await self.pass_by(5)
        overdue = [one.progress.overdue for one in await self.stored() if one.progress.overdue]
        assert overdue == [] or who not in self.service.lists[WELCOME]

    async def extension_waits(self, who: str) -> None:
        """Somebody's time is over while the change that extends it waits for its next try."""
        await self.let_in(who, 20)
        await self.advance(18)
        await self.ask("add", [who], 90)
        await self.read_fails(2)
        await self.world.decide(Act.APPROVE, self.asked[-1], ADA)
        await self.work()
        await self.seconds_pass(6)
        await self.agrees()

    async def undo_late(self, who: str = "+4") -> None:
        """Undo a removal, and approve that only after the end that it gives back."""
        await self.let_in(who, 20)
        await self.change("remove", [who], 0)
        await self.work()
        await self.click(Act.UNDO, 0)
        await self.pass_by(30)
        posts, undo = len(self.service.posts), self.asked[-1]
        if undo.requested.undo_of:
            await self.world.decide(Act.APPROVE, undo, ADA)
            await self.work()
            assert [sent for sent in self.service.posts[posts:] if who in sent] == []

    async def quorum_lowered(self, who: str) -> None:
        """Somebody has approved, and then one approval is enough."""
        await self.restart(2)
        await self.change("remove" if who in self.service.lists[WELCOME] else "add", [who], 0)
        await self.nobody_waits_in_vain()

    async def approve(self) -> None:
        for one in self.asked:
            if (await self.world.stored(one)).state is State.PENDING:
                await self.advance(0.1)
                await self.world.decide(Act.APPROVE, one, ADA)

    async def click(self, act: Act, number: int) -> None:
        if not self.asked:
            return
        request = self.asked[-1 - number % len(self.asked)]
        if act is Act.RETRY:
            await self.world.decide(act, request, ADA)
            return
        asked = await self.world.asking.undo(await self.world.person(OTTO), request.id)
        if asked.request is not None and asked.request.id not in {one.id for one in self.asked}:
            self.asked.append(asked.request)

    async def late(self) -> None:
        self.service.late += 1

    async def land(self) -> None:
        self.service.land()
        self.service.sent_at.clear()

    async def read_fails(self, times: int) -> None:
        self.service.read_faults += [FAULTS["502"]() for _ in range(times)]

    async def post_fails(self, kind: str, times: int) -> None:
        self.service.post_faults += [FAULTS[kind]() for _ in range(times)]

    async def lose_answer(self) -> None:
        self.service.lost_answers.append(ServiceTimeout("flow", "No answer."))

    async def forget(self, who: str) -> None:
        self.service.forgets = who

    async def refuse_removal(self, who: str) -> None:
        self.service.keeps = who

    async def crash(self, is_before: bool) -> None:
        self.service.crash = "before" if is_before else "after"

    async def retry_what_failed_in_part(self) -> None:
        """Somebody reads on the cards that the list is not as it was sent, and presses Retry."""
        await self.calm()
        for one in await self.stored():
            if one.state is State.FAILED and one.progress.part and not one.progress.undone_by:
                await self.world.decide(Act.RETRY, one, ADA)

    async def restart(self, needed: int) -> None:
        self.needed = needed
        self.begin()

    async def settle(self) -> None:
        """All is well again: after a while nothing is left to do, and everything agrees."""
        await self.calm()
        # Whatever is tried more and more slowly has had its next turn by then.
        for _ in range(6):
            await self.advance(120)
            await self.work()
        stored = await self.stored()
        assert State.APPLYING not in {one.state for one in stored}
        assert [one.progress.overdue for one in stored if one.progress.overdue] == []
        async with self.database.read_only() as tx:
            assert await flows.posts(tx, WELCOME) == []
            assert await grants.due(tx, WELCOME) == []
            granted = set(await grants.of_flow(tx, WELCOME))
        assert set(self.service.lists[WELCOME]) == await self.told() == granted

    async def told(self) -> set[str]:
        """Who is on the list, by what the audit says was applied and ended."""
        async with self.database.read_only() as tx:
            entries = await self.world.audit.latest(tx, 10_000)
        there: set[str] = set()
        for entry in reversed(entries):
            detail = json.loads(entry.detail)
            if entry.action in {"request.applied", "request.applied_in_part"}:
                there |= {*detail["additions"], *detail.get("already_there", ())}
                there -= {*detail["removals"], *detail.get("already_gone", ())}
            elif entry.action == "grant.ended":
                there.discard(detail["identity"])
        return there

    async def nobody_waits_in_vain(self) -> None:
        """Who approved moves a request as soon as one approval is enough."""
        self.needed = 1
        self.begin()
        for one in await self.stored():
            if one.state is State.PENDING and self.clock.now() < one.expires_at:
                try:
                    await self.world.decide(Act.APPROVE, one, ADA)
                except Conflict as error:
                    raise AssertionError(error.sentence) from error

    async def deleted_flow_is_let_go(self) -> None:
        """Neither grants nor looks go on for ever on a flow that is not there any more."""
        await self.let_in("+1", 20)
        del self.service.lists[WELCOME]
        # Three looks, and pauses of up to ten minutes.
        for _ in range(18):
            await self.advance(100)
            await self.work()
        reads = self.service.reads
        await self.advance(3600)
        await self.work()
        assert self.service.reads - reads <= 1
        async with self.database.read_only() as tx:
            assert await grants.due(tx, WELCOME) == []


async def run(url: str, steps: list[tuple]) -> None:
    clock = FakeClock()
    database = Database(url, clock)
    try:
        rough = Rough(database, clock)
        for step in steps:
            await rough.follow(step)
        await rough.settle()
        await rough.nobody_waits_in_vain()
        await rough.settle()
        await rough.deleted_flow_is_let_go()
    finally:
        await database.close()


# A day takes seconds: what fails is shown as it was found.
@settings(unhurried, max_examples=DAYS, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps=days())
def test_cards_grants_and_list_agree_after_rough_days(tmp_path, steps) -> None:
    with migrated_copy(tmp_path) as url:
        run_steadily(run(url, steps))
