"""A service hangs, resets, drips a byte a second, or fails."""

from functools import partial

from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import Message
from tests.faults.drill import Drill, Notes, lasts
from tests.support.fleet import Fleet, running_fleet
from tests.support.kinds import database_of
from tests.support.loop_time import seconds_now
from tests.support.story import ADMIN, APPROVER, MARKS, REQUESTER, Story

FLOW_WORDS = ("flow service",)
FLOWS, CLICKS = 200, 12
CLICK_SECONDS = 1.0


async def flow(notes: Notes, kind: FaultKind) -> None:
    """People ask, look and approve while the flow service fails."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        story = Story(fleet)
        waiting = await story.request()
        fault = fleet.services.state.faults.add(Fault(kind, "flow", seconds=1.0))
        began = seconds_now()
        await notes.click_says(story, waiting, "Approve", "You approved")
        await notes.people_see(fleet, REQUESTER, "/testusers", "add welcome somebody", *FLOW_WORDS)
        await notes.people_see(fleet, "U0VIEWER", "/testusers", "list welcome", *FLOW_WORDS)
        await lasts(began, notes.seconds)
        fault.lift()
        async with notes.recovery():
            story.becomes(waiting, "applied")
            await settled(story, waiting.ts)
            if MARKS["failed"] in waiting.text:
                notes.seen.append(waiting.text.split("*Approved by")[0])
                await story.press(APPROVER, waiting, "Retry")
            await story.comes_true()
        await notes.all_holds(story)


async def settled(story: Story, ts: str) -> None:
    """Wait until the card says applied or failed."""

    def is_settled() -> bool:
        (card,) = (one for one in story.fleet.slack.workspace.all_messages if one.ts == ts)
        return MARKS["applied"] in card.text or MARKS["failed"] in card.text

    await story.fleet.slack.until(is_settled, timeout=30)


async def inventory(notes: Notes, kind: FaultKind) -> None:
    """One data center fails: it is named, the others and its last listing are shown."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        before = await fleet.ask(REQUESTER, "/orgs")
        fault = Fault(kind, "inventory", data_center="eu", seconds=1.0)
        fleet.services.state.faults.add(fault)
        began = seconds_now()
        answer = await fleet.ask(REQUESTER, "/orgs", "refresh")
        notes.saw(answer, "organizations")
        failing = [line for line in answer.all_text.splitlines() if "*eu* is out of date" in line]
        assert failing, answer.all_text
        notes.seen.append(failing[0])
        await lasts(began, notes.seconds)
        fault.lift()
        async with notes.recovery():
            again = await fleet.ask(REQUESTER, "/orgs", "refresh")
            assert again.text == before.text, again.text
        notes.holds("every data center listed again")
        assert not fleet.tracebacks, fleet.tracebacks[0][:2000]


async def email(notes: Notes, kind: FaultKind) -> None:
    """The email service fails while its key is checked."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        fault = fleet.services.state.faults.add(Fault(kind, "email", seconds=1.0))
        began = seconds_now()
        await notes.people_see(fleet, REQUESTER, "/emailkey", "check", "email service")
        await lasts(began, notes.seconds)
        fault.lift()
        async with notes.recovery():
            answer = await fleet.ask(REQUESTER, "/emailkey", "check")
            assert "The email key works" in answer.all_text, answer.all_text
        notes.holds("the key works again")
        assert not fleet.tracebacks, fleet.tracebacks[0]


async def many_flows(notes: Notes) -> None:
    """Changes of many flows hang, while people decide on another one."""
    async with (
        database_of(notes.database, notes.folder) as url,
        running_fleet(url, commands_per_minute="0") as fleet,
    ):
        story, state = Story(fleet), fleet.services.state
        cards = [await story.request() for _ in range(CLICKS)]
        faults = []
        for number in range(FLOWS):
            sid = f"FW{1000 + number:032X}"
            state.edit_flow(sid, [])
            faults.append(
                state.faults.add(Fault(FaultKind.HANG, "flow", flow_sid=sid, method="POST"))
            )
            text = f"add {sid} guest now because of the drill"
            await fleet.slack.command(ADMIN, "C0GENERAL", "/testusers", text)
        await fleet.slack.until(lambda: len(applying(fleet)) >= FLOWS, timeout=60)
        took = [await seconds_of(story, card) for card in cards]
        notes.seen.append(f"a click is answered after {max(took):.1f} s at most")
        assert any(fault.struck for fault in faults), "nothing hangs"
        assert max(took) < CLICK_SECONDS, took
        for fault in faults:
            fault.lift()
        async with notes.recovery():
            await story.comes_true()
        await notes.all_holds(story)


def applying(fleet: Fleet) -> list[Message]:
    """The answers to those who asked for a change without approval."""
    return [one for one in fleet.seen_by(ADMIN) if "Applying now" in one.all_text]


async def seconds_of(story: Story, card: Message) -> float:
    """Approve; return after how many seconds the approver has the answer."""
    began = seconds_now()
    answer = await story.press(APPROVER, card, "Approve", "applied")
    took = seconds_now() - began
    assert "You approved" in answer.all_text, answer.all_text
    return took


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
    Drill(
        "200 flows hang",
        "A click on another flow is answered within a second, and its change made within 30 s of"
        " the service's return.",
        many_flows,
    ),
    *(
        Drill(f"the flow service {name}", FLOW_PROMISE, partial(flow, kind=kind))
        for name, kind in KINDS.items()
    ),
    *(
        Drill(f"a data center {name}", LIST_PROMISE, partial(inventory, kind=KINDS[name]))
        for name in ("hangs", "resets connections", "drips a byte a second", "answers 500")
    ),
    *(
        Drill(
            f"the email service {name}",
            "Who checks the key gets the reason in a sentence.",
            partial(email, kind=KINDS[name]),
            ("sqlite",),
        )
        for name in ("hangs", "resets connections", "drips a byte a second")
    ),
)
