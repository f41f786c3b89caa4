"""The clock jumps, and processes stand still."""

from functools import partial
from pathlib import Path

from sandbox.services.faults import Fault, FaultKind
from tests.faults.drill import Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import running_fleet
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, REQUESTER, Story

# Slack's signatures are good for five minutes; beyond, the bot must refuse its requests.
SMALL_JUMP, LARGE_JUMP = 200.0, 7200.0
FROZEN_SECONDS = 25.0


async def jumps(notes: Notes, seconds: float) -> None:
    """The machine's clock is set wrong while the bot runs, and right again."""
    clock = Path(notes.folder) / "clock"
    clock.write_text("0")
    launcher = ("-m", "tests.support.launch", "--clock", str(clock))
    async with database_of(notes.database, notes.folder) as url, running_fleet(url, 0) as fleet:
        await fleet.add(launcher, request_hours="1", remind_hours="0.5")
        story = Story(fleet)
        waiting, timed = await story.request(), await story.request(extra="for 30m")
        await story.press(APPROVER, timed, "Approve", "applied")
        await story.comes_true()
        for offset in (seconds, -seconds):
            clock.write_text(str(offset))
            began = seconds_now()
            answer = await fleet.ask(REQUESTER, "/testusers", "list welcome")
            if abs(seconds) == SMALL_JUMP:
                notes.saw(answer, "person")
            else:
                assert "dispatch_failed" in answer.all_text, answer.all_text
                notes.seen.append("Slack's own error: its requests look stale, and are refused")
            await lasts(began, notes.seconds / 2)
            assert await story.is_true(), story.problems()
        clock.write_text("0")
        async with notes.recovery():
            await story.press(APPROVER, waiting, "Approve", "applied")
            await story.comes_true()
        notes.holds("nothing expired, reminded or ended early")
        assert not fleet.slack.workspace.thread("C0APPROVALS", waiting.ts)
        await notes.all_holds(story)


async def suspended(notes: Notes) -> None:
    """The only process stands still, as its machine does, and goes on."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        story = Story(fleet)
        waiting = await story.request()
        hold = Fault(FaultKind.HOLD, "flow", method="POST", times=1)
        fleet.services.state.faults.add(hold)
        await fleet.slack.click(APPROVER, waiting, "Approve")
        story.becomes(waiting, "applied")
        await hold.reached()
        fleet.processes[0].freeze()
        hold.lift()
        began = seconds_now()
        fleet.slack.wait_for_acknowledgements(3.0)
        answer = await fleet.ask(REQUESTER, "/testusers", "list welcome")
        assert "operation_timeout" in answer.all_text, answer.all_text
        notes.seen.append("Slack's own error: the bot does not answer")
        await lasts(began, FROZEN_SECONDS)
        fleet.processes[0].thaw()
        async with notes.recovery():
            await story.comes_true()
        await notes.all_holds(story)


async def frozen(notes: Notes) -> None:
    """One of two processes stands still between its GET and its POST, and wakes up late."""
    async with database_of("postgres", notes.folder) as url, running_fleet(url) as fleet:
        (first,) = fleet.processes
        story = Story(fleet)
        waiting = await story.request()
        hold = Fault(FaultKind.HOLD, "flow", method="GET", times=1)
        fleet.services.state.faults.add(hold)
        await fleet.slack.click(APPROVER, waiting, "Approve")
        await hold.reached()
        first.freeze()
        hold.lift()
        began = seconds_now()
        fleet.processes.remove(first)
        try:
            await fleet.add()
            await notes.people_see(fleet, REQUESTER, "/testusers", "list welcome", "test users")
            async with notes.recovery():
                story.becomes(waiting, "applied")
                await story.comes_true()
            story.edit("welcome", "by-hand")
            await lasts(began, FROZEN_SECONDS)
        finally:
            fleet.processes.append(first)
            first.thaw()
        await first.says(lambda: any("lease_lost" in line for line in first.lines), 15)
        notes.holds("the late one found its lease gone")
        await notes.all_holds(story)


JUMP_PROMISE = (
    "Nothing expires, reminds or ends early or late: the bot counts on from its start, and follows"
    " the machine's clock only where Slack's agrees with it. While the clock is off by more than"
    " five minutes, Slack's requests look stale and are refused."
)
FREEZE_PROMISE = "The change is applied once, whoever ends it; what woke up late changes nothing."
DRILLS = (
    Drill("the clock jumps by 200 s", JUMP_PROMISE, partial(jumps, seconds=SMALL_JUMP)),
    Drill("the clock jumps by 2 h", JUMP_PROMISE, partial(jumps, seconds=LARGE_JUMP)),
    Drill("the machine is suspended for 25 s", FREEZE_PROMISE, suspended),
    Drill("one of two processes freezes for 25 s", FREEZE_PROMISE, frozen, ("postgres",)),
)
