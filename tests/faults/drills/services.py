"""Drills in which a service hangs, resets connections, sends one byte per second, or fails."""

from functools import partial

from sandbox.services.faults import Fault, FaultKind
from tests.faults.drill import Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import running_fleet
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, MARKS, REQUESTER, Story

FLOW_WORDS = ("flow service",)


async def flow(notes: Notes, kind: FaultKind) -> None:
    """Request, list and approve test users while the flow service fails."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        story = Story(fleet)
        waiting = await story.request()
        fault = fleet.services.state.faults.add(Fault(kind, "flow", seconds=1.0))
        began = seconds_now()
        await notes.click_says(story, waiting, "Approve", "You approved")
        await notes.people_see(fleet, REQUESTER, "/testusers", "add welcome +15550123", *FLOW_WORDS)
        await notes.people_see(fleet, "U0VIEWER", "/testusers", "list welcome", *FLOW_WORDS)
        await lasts(began, notes.seconds)
        fault.lift()
        async with notes.recovery():
            story.becomes(waiting, "applied")
            await settled(story, waiting.ts)
            if MARKS["failed"] in waiting.text:
                notes.seen.append(waiting.text.split(", approved by")[0])
                await story.press(APPROVER, waiting, "Retry")
            await story.comes_true()
        await notes.all_holds(story)


async def settled(story: Story, ts: str) -> None:
    """Wait until the card shows that the change was applied or that it failed."""

    def is_settled() -> bool:
        (card,) = (
            message for message in story.fleet.slack.workspace.all_messages if message.ts == ts
        )
        return MARKS["applied"] in card.text or MARKS["failed"] in card.text

    await story.fleet.slack.until(is_settled, timeout=30)


async def inventory(notes: Notes, kind: FaultKind) -> None:
    """Check that `/orgs` names a failing data center and still shows its most recent listing."""
    # Without a cache, each `/orgs` fetches the listings.
    settings = {"inventory_cache_seconds": "0"}
    async with (
        database_of(notes.database, notes.folder) as url,
        running_fleet(url, **settings) as fleet,
    ):
        before = await fleet.ask(REQUESTER, "/orgs")
        fault = Fault(kind, "inventory", data_center="eu", seconds=1.0)
        fleet.services.state.faults.add(fault)
        began = seconds_now()
        answer = await fleet.ask(REQUESTER, "/orgs")
        notes.saw(answer, "organizations")
        failing = [line for line in answer.all_text.splitlines() if "*eu* is out of date" in line]
        assert failing, answer.all_text
        notes.seen.append(failing[0])
        await lasts(began, notes.seconds)
        fault.lift()
        async with notes.recovery():
            again = await fleet.ask(REQUESTER, "/orgs")
            # The line below the table says when it was updated.
            assert again.text.partition("Updated")[0] == before.text.partition("Updated")[0]
            assert "out of date" not in again.text
        notes.holds("every data center listed again")
        assert not fleet.tracebacks, fleet.tracebacks[0][:2000]


FLOW_PROMISE = (
    "Who asks gets the reason in a sentence; an approved change is retried, then `failed` with"
    " `Retry`; afterwards it is applied once."
)
LIST_PROMISE = "The failing data center is named with its reason and its last good listing."
KINDS = {
    "hangs": FaultKind.HANG,
    "resets connections": FaultKind.RESET,
    "drips a byte a second": FaultKind.DRIP,
    "answers 500": FaultKind.STATUS,
    "stores and loses the answer": FaultKind.CUT,
}
DRILLS = (
    *(
        Drill(f"the flow service {name}", FLOW_PROMISE, partial(flow, kind=kind))
        for name, kind in KINDS.items()
    ),
    *(
        Drill(f"a data center {name}", LIST_PROMISE, partial(inventory, kind=KINDS[name]))
        for name in ("hangs", "resets connections", "drips a byte a second", "answers 500")
    ),
)
