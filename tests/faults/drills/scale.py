"""Several processes on one database act as one; SQLite has one."""

import asyncio

from sandbox.services.faults import Fault, FaultKind
from tests.faults.drill import Drill, Notes
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.story import ALERTS, APPROVER, REQUESTER, SECOND, Story

PROCESSES = 4
REQUESTS = 6
UNUSABLE = 2
ORGANIZATION = ("jp", "80004410")


async def as_one(notes: Notes) -> None:
    """Four processes start at once on an empty database, and people talk to all of them."""
    async with (
        database_of("postgres", notes.folder) as url,
        running_fleet(url, PROCESSES, inventory_watch="off", commands_per_minute="0") as fleet,
    ):
        notes.holds("migrated once")
        await decided_by_two(notes, fleet)
        await noticed_by_all(notes, fleet)
        await one_alert(notes, fleet)
        assert not fleet.tracebacks, fleet.tracebacks[0]


async def decided_by_two(notes: Notes, fleet: Fleet) -> None:
    """Two approvers press every `Approve` at the same moment: each change is made once."""
    story = Story(fleet)
    cards = [await story.request() for _ in range(REQUESTS)]
    posts_before = len(fleet.services.state.flows[story.sid("welcome")].history)
    await asyncio.gather(
        *(fleet.slack.click(user, card, "Approve") for card in cards for user in (APPROVER, SECOND))
    )
    for card in cards:
        story.becomes(card, "applied")
    await notes.all_holds(story)
    posts = len(fleet.services.state.flows[story.sid("welcome")].history) - posts_before
    assert posts <= REQUESTS, f"{posts} POSTs for {REQUESTS} requests"
    notes.holds(f"{2 * REQUESTS} approvals of {REQUESTS} requests by two people: {posts} POSTs")


async def noticed_by_all(notes: Notes, fleet: Fleet) -> None:
    """A plan set in one process is known to each of the others."""
    await fleet.ask("U0ADMIN", "/ratelimits", f"plan {ORGANIZATION[1]} enterprise")
    for _ in range(PROCESSES):
        answer = await fleet.ask("U0VIEWER", "/ratelimits", ORGANIZATION[1])
        assert "10,000" in answer.all_text or "10000" in answer.all_text, answer.all_text
    notes.holds("a plan set in one is known to all")


async def one_alert(notes: Notes, fleet: Fleet) -> None:
    """A block met by all is one message."""
    fleet.services.state.limits.block(ORGANIZATION, 44)
    for _ in range(2 * PROCESSES):
        await fleet.ask(REQUESTER, "/ratelimits", f"check {ORGANIZATION[1]}")
    alerts = await fleet.slack.until(lambda: fleet.slack.workspace.messages(ALERTS))
    assert len(alerts) == 1, [alert.text for alert in alerts]
    notes.seen.append(alerts[0].text.splitlines()[0])
    notes.holds("one alert")


async def taken_over(notes: Notes) -> None:
    """The process that is about to change a list is killed; one of the others does it."""
    async with (
        database_of("postgres", notes.folder) as url,
        running_fleet(url, 1, inventory_watch="off") as fleet,
    ):
        (first,) = fleet.processes
        story = Story(fleet)
        waiting = await story.request()
        second = await fleet.add()
        # Asleep, so that it is the first that begins.
        second.freeze()
        fleet.processes.remove(second)
        hold = Fault(FaultKind.HOLD, "flow", method="GET", times=1)
        fleet.services.state.faults.add(hold)
        try:
            await fleet.slack.click(APPROVER, waiting, "Approve")
            story.becomes(waiting, "applied")
            await hold.reached()
        finally:
            fleet.processes.append(second)
            second.thaw()
        await first.kill()
        async with notes.recovery():
            await notes.people_see(fleet, REQUESTER, "/testusers", "list welcome", "test users")
            await story.comes_true()
        hold.lift()
        await notes.all_holds(story)


DRILLS = (
    Drill(
        "four processes on one database",
        "They act as one: migrated once, each change made once, one alert, plans known to all.",
        as_one,
        ("postgres",),
    ),
    Drill(
        "kill -9 of the process that changes a list",
        "Another one finishes it within 30 s, once.",
        taken_over,
        ("postgres",),
    ),
)
