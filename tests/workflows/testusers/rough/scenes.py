"""Scenes in which something went wrong once, and days made of them."""

from collections.abc import Sequence
from random import Random

from bot.model.testusers.approval import Act, State
from bot.store import grants
from tests.support.testusers import WELCOME
from tests.workflows.testusers.rough.outside import FAULTS, REFUSALS
from tests.workflows.testusers.rough.rough import PEOPLE, STRANGERS, Rough
from tests.workflows.testusers.rough.world import APPROVERS

# In twenty minutes, with pauses from 10 s to 10 min.
MOST_READS, MOST_ENTRIES, MOST_IN_VAIN = 14, 5, 2
IN_VAIN, ENDED = "flow.change_not_found", "grant.ended"
# Two days in a row, the first with an even number, have every scene.
SCENES_A_DAY = 8


def is_so(change, listed) -> bool:
    """Whether the list is as a change wants it."""
    return {*change.additions} <= {*listed} and not {*change.removals} & {*listed}


class Scenes(Rough):
    """Each goes wrong in one way, and whatever came before does not matter."""

    def may_raise(self, name: str) -> tuple[type[Exception], ...]:
        """What people may be told in an operation; a scene knows what it does."""
        return () if name in SCENES else super().may_raise(name)

    async def let_in(self, who: str, seconds: int) -> bool:
        """Let somebody in for a time, on a calm service; return whether they are."""
        await self.calm()
        await self.pass_by(5)
        await self.change("add", [who], seconds)
        await self.work()
        grant = (await self.grants()).get(who)
        return grant is not None and grant.request_id == self.asked[-1].id

    async def empty(self) -> bool:
        """Have nobody of `PEOPLE` on a calm service's list; return whether that is so."""
        await self.calm()
        await self.pass_by(5)
        if {*PEOPLE} & {*self.service.listed}:
            await self.change("remove", PEOPLE, 0)
            await self.pass_by(5)
        is_applying = State.APPLYING in {one.state for one in await self.stored()}
        return not is_applying and not {*PEOPLE} & {*self.service.listed}

    def others(self, who: str) -> list[str]:
        """Who of `PEOPLE` is not on the list, without somebody."""
        return [one for one in PEOPLE if one != who and one not in self.service.listed]

    async def agrees(self) -> None:
        """What was asked last is true if it is called applied, and not if it failed."""
        request = await self.world.stored(self.asked[-1])
        if request.state in (State.APPLIED, State.FAILED):
            is_applied = request.state is State.APPLIED
            is_true = is_so(request.requested.change, self.service.listed)
            assert is_true is is_applied, (request, self.service.listed)

    async def late_post(self, who: str) -> None:
        """A POST is carried out after the next change was applied."""
        await self.calm()
        await self.late()
        await self.change("remove" if who in self.service.listed else "add", [who], 0)
        await self.work()
        await self.change("add", self.others(who) or ["+5"], 0)
        await self.pass_by(2, step=1)
        await self.land()
        await self.pass_by(10)
        await self.agrees()

    async def try_twice_in_vain(self, who: str) -> None:
        """Ask for somebody who is not there; the third POST is carried out, and not answered."""
        await self.empty()
        await self.third_post_lands([who])

    async def third_post_lands(self, people: Sequence[str]) -> None:
        """Two POSTs are in vain; the third is carried out, and not answered."""
        await self.post_fails("502", 2)
        await self.late()
        await self.change("add", people, 600)
        await self.work()
        await self.pass_by(1)
        await self.advance(3)
        await self.work()
        await self.land()

    async def nobody_can_look(self) -> None:
        """The list cannot be read until all tries are over."""
        await self.read_fails(3)
        for seconds in (4, 4, 4, 40, 40):
            await self.advance(seconds)
            await self.work()
        await self.agrees()

    async def answer_unknown(self, who: str) -> None:
        """Nobody can look at the list when the tries are over."""
        await self.try_twice_in_vain(who)
        await self.nobody_can_look()

    async def extension_unknown(self, who: str) -> None:
        """The same, and meanwhile the time is over of somebody whom the change extends."""
        await self.let_in(who, 30)
        await self.third_post_lands([who, *self.others(who)])
        await self.nobody_can_look()

    async def third_try_lands(self, who: str) -> None:
        """All tries are over when the list is looked at, and it is as it should be."""
        await self.try_twice_in_vain(who)
        await self.pass_by(5, step=1)

    async def stored_in_part(self, who: str, seconds: int = 0) -> None:
        """The service drops one of several people."""
        await self.empty()
        await self.forget(who)
        await self.change("add", PEOPLE, seconds)
        await self.pass_by(6, step=1)
        await self.agrees()

    async def stored_in_part_for_a_while(self, who: str) -> None:
        """The same, and nobody tries again until the time is over of those who got in."""
        await self.stored_in_part(who, 90)
        await self.pass_by(100, step=10)

    async def one_spoils(self, who: str) -> None:
        """The service fails whenever somebody is on the list; others get in all the same."""
        if await self.empty():
            self.service.fails_with = who
            others = [one for one in PEOPLE if one != who]
            await self.change("add", [who], 0)
            await self.change("add", others, 90)
            await self.pass_by(6, step=1)
            assert (await self.world.stored(self.asked[-1])).state is State.APPLIED
            assert {*self.service.listed} & {*PEOPLE} == {*others}

    async def end_refused(self, who: str, refusal: str) -> None:
        """An end cannot be made for a long time, and then somebody extends it.

        Others whose time is over meanwhile have an entry each.
        """
        await self.let_in(who, 20)
        await self.refuse_removal(who, refusal)
        await self.advance(90)
        await self.work()
        reads, noted, granted = self.service.reads, self.noted.copy(), await self.grants()
        await self.pass_by(1200, step=60)
        new = self.noted - noted
        assert self.service.reads - reads <= MOST_READS
        assert new[ENDED] <= len(granted)
        assert new.total() - new[ENDED] <= MOST_ENTRIES
        assert new[IN_VAIN] <= MOST_IN_VAIN
        await self.change("add", [who], 90)
        await self.pass_by(5)
        overdue = [one.progress.overdue for one in await self.stored() if one.progress.overdue]
        assert overdue == [] or who not in self.service.listed, overdue

    async def extension_waits(self, who: str) -> None:
        """Somebody's time is over while the change that extends it waits for its next try.

        It lets in others as well, so that it is not true before that.
        """
        await self.let_in(who, 20)
        await self.advance(18)
        await self.ask("add", [who, *self.others(who)], 90)
        await self.read_fails(2)
        await self.approve(self.asked[-1])
        await self.work()
        await self.pass_by(6, step=1)
        await self.agrees()

    async def undo_late(self, who: str) -> None:
        """Undo a removal, and approve that only after the end that it gives back."""
        await self.let_in(who, 20)
        await self.change("remove", [who], 0)
        await self.work()
        await self.click(Act.UNDO, 0)
        await self.pass_by(30)
        posts, undo = len(self.service.posts), self.asked[-1]
        if undo.requested.undo_of:
            await self.approve(undo)
            await self.work()
            assert [sent for sent in self.service.posts[posts:] if who in sent] == []

    async def quorum_lowered(self, who: str, needed: int) -> None:
        """Some have approved, and then fewer are enough."""
        await self.restart(needed=needed, approvers="everybody")
        await self.calm()
        await self.ask("remove" if who in self.service.listed else "add", [who], 0)
        await self.approve(self.asked[-1], needed - 1)
        await self.restart(needed=1)
        await self.agree()
        await self.nobody_waits_in_vain()

    async def settings_change(self, who: str, is_gone: bool, approvers: str, alias: str) -> None:
        """A request waits while the channel, who may approve, and the flow's name change."""
        await self.calm()
        await self.ask("remove" if who in self.service.listed else "add", [who], 0)
        await self.work()
        if is_gone:
            self.slack.gone.add(self.settings.channel)
        channel, needed = f"C{self.lives}", min(2, self.settings.needed)
        await self.restart(approvers=approvers, alias=alias, channel=channel, needed=needed)
        await self.agree()
        await self.approve(self.asked[-1])
        await self.work()
        assert (await self.world.stored(self.asked[-1])).state is not State.PENDING

    async def under_maintenance(self, who: str) -> None:
        """Nothing is found while somebody's time is over; the flow was there all the time."""
        is_in = await self.let_in(who, 20)
        await self.hide({"GET", "POST"})
        await self.pass_by(280, step=20)
        await self.calm()
        await self.pass_by(640, step=80)
        assert not is_in or who not in self.service.listed

    async def posts_not_found(self, who: str) -> None:
        """The list can be read, and every update is answered with 404."""
        is_in = await self.let_in(who, 20)
        await self.hide({"POST"})
        await self.pass_by(900, step=60)
        await self.agree()
        assert not is_in or who in self.service.listed
        await self.calm()
        await self.pass_by(640, step=80)
        assert not is_in or who not in self.service.listed

    async def deleted(self, who: str, is_empty: bool) -> None:
        """The flow is deleted for an hour: grants do not go on for ever, nor looks."""
        await self.let_in(who, 20)
        await self.delete()
        if self.service.deleted is not None:
            await self.pass_by(2400, step=100)
            reads = self.service.reads
            await self.pass_by(1200, step=60)
            assert self.service.reads - reads <= 1
            async with self.database.read_only() as tx:
                assert await grants.due(tx, WELCOME) == []
            await self.bring_back(is_empty)
            await self.pass_by(10)

    async def retry_what_failed_in_part(self) -> None:
        """Somebody reads on the cards that the list is not as it was sent, and presses Retry."""
        await self.calm()
        for one in await self.stored():
            if one.state is State.FAILED and one.progress.part and not one.progress.undone_by:
                await self.decide(Act.RETRY, one, self.settings.able[0])


SCENES = {
    "late_post": (),
    "answer_unknown": (),
    "extension_unknown": (),
    "third_try_lands": (),
    "stored_in_part": (),
    "stored_in_part_for_a_while": (),
    "one_spoils": (),
    "end_refused": (tuple(REFUSALS),),
    "extension_waits": (),
    "undo_late": (),
    "quorum_lowered": ((2, 3),),
    "settings_change": ((True, False), tuple(APPROVERS), ("welcome", "greeting", "")),
    "under_maintenance": (),
    "posts_not_found": (),
    "deleted": ((True, False),),
}


def day(seed: int) -> list[tuple]:
    """Some of the scenes with somebody, and operations between them."""
    random, two_days = Random(seed), Random(f"days {seed // 2}")
    scenes = two_days.sample(sorted(SCENES), len(SCENES))
    steps: list[tuple] = []
    for scene in scenes[SCENES_A_DAY * (seed % 2) :][:SCENES_A_DAY]:
        steps += [_operation(random) for _ in range(random.randrange(4))]
        given = [random.choice(some) for some in SCENES[scene]]
        steps.append((scene, random.choice(PEOPLE), *given))
    return [*steps, ("retry_what_failed_in_part",)] if random.random() < 0.5 else steps


def _operation(random: Random) -> tuple:
    """Something that people do or that goes wrong; most often a change."""
    some = tuple(random.sample(PEOPLE, random.randrange(1, 4)))
    asked = random.choice(("add", "add", "remove")), some, random.choice((0, 20, 90))
    return random.choice(
        (
            *[("change", *asked)] * 3,
            *[("late",)] * 2,
            *[("pass_by", random.choice((1, 5, 30)))] * 2,
            *[("edit", random.choice(PEOPLE + STRANGERS))] * 3,
            ("ask", *asked),
            ("approve_all", random.randrange(1, 4)),
            ("click", random.choice((*Act, Act.RETRY, Act.UNDO)), random.randrange(4)),
            ("land",),
            ("read_fails", random.randrange(1, 6)),
            ("post_fails", random.choice(sorted(FAULTS)), random.randrange(1, 5)),
            ("lose_answer",),
            ("forget", random.choice(("", "+2", "+3"))),
            ("refuse_removal", random.choice(("", "+1", "+2")), random.choice(sorted(REFUSALS))),
            ("crash", random.choice(("before", "after"))),
            ("restart_with", random.choice((1, 1, 2)), random.choice(sorted(APPROVERS))),
            ("hide", random.choice((("POST",), ("GET", "POST")))),
            ("delete",),
            ("bring_back", random.random() < 0.5),
        )
    )
