"""A service hangs, resets, drips a byte a second, or fails."""

from collections.abc import Awaitable, Callable
from functools import partial

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.limits import TOO_MANY_AT_ONCE
from sandbox.slack.messages import Message
from tests.faults.drill import RECOVERY_SECONDS, Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.loop_time import seconds_now
from tests.support.story import ADMIN, ALERTS, APPROVALS, APPROVER, MARKS, REQUESTER, Story

FLOW_WORDS = ("flow service",)
FLOWS, CLICKS, UNDOS = 200, 12, 60
SIDS = [f"FW{1000 + number:032X}" for number in range(FLOWS)]
ACCESS_SECONDS = 20
ORGANIZATION, BLOCK_SECONDS = ("jp", "80004410"), 4.0
# What many flows that hang cost everybody else; a call that hangs takes 10 s.
AT_MOST_SECONDS, MADE_SECONDS = 1.0, 15.0

Hang = Callable[[Fleet], Awaitable[list[Fault]]]


async def flow(notes: Notes, kind: FaultKind) -> None:
    """People ask, look and approve while the flow service fails."""
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
                notes.seen.append(waiting.text.split("*Approved by")[0])
                await story.press(APPROVER, waiting, "Retry")
            await story.comes_true()
        await notes.all_holds(story)


async def settled(story: Story, ts: str) -> None:
    """Wait until the card says applied or failed."""

    def is_settled() -> bool:
        (card,) = (
            message for message in story.fleet.slack.workspace.all_messages if message.ts == ts
        )
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


async def many_flows(notes: Notes, hang: Hang, *, are_ends: bool = False) -> None:
    """Many flows hang, while people decide on another one and an organization is blocked.

    `hang` has them hang. Where that `are_ends`, what was decided is made meanwhile, and all lists
    are empty afterwards.
    """
    async with (
        database_of(notes.database, notes.folder) as url,
        running_fleet(url, commands_per_minute="0") as fleet,
    ):
        story = Story(fleet)
        await fleet.ask(REQUESTER, "/orgs")
        cards = [await story.request() for _ in range(CLICKS)]
        for sid in SIDS:
            fleet.services.state.edit_flow(sid, [])
        faults = await hang(fleet)
        click = max([await seconds_of_click(story, card) for card in cards])
        alert = await seconds_of_alert(story)
        notes.seen.append(f"a click is answered and shown after {click:.1f} s at most")
        notes.seen.append(f"an alert is posted after {alert:.1f} s")
        assert any(fault.struck for fault in faults), "nothing hangs"
        assert max(click, alert) < AT_MOST_SECONDS, (click, alert)
        if are_ends:
            await story.comes_true(MADE_SECONDS)
            notes.holds("changes of another flow made meanwhile")
        for fault in faults:
            fault.lift()
        async with notes.recovery():
            await story.comes_true()
            if are_ends:
                await fleet.slack.until(lambda: not listed(fleet), timeout=RECOVERY_SECONDS)
                notes.holds(f"the ends of {FLOWS} flows made")
        await notes.all_holds(story)


def listed(fleet: Fleet) -> list[str]:
    """Everybody who is on the list of one of the many flows."""
    return [identity for sid in SIDS for identity in fleet.services.state.flows[sid].identities]


async def changing_hangs(fleet: Fleet) -> list[Fault]:
    """Let changes hang that are being sent."""
    faults = faults_of("POST", fleet)
    await change_all(fleet)
    return faults


async def reading_hangs(fleet: Fleet) -> list[Fault]:
    """Let lists hang that are read: for access that is over, and for who presses `Undo`."""
    await change_all(fleet, f"for {ACCESS_SECONDS}s")
    flows = fleet.services.state.flows
    await fleet.slack.until(lambda: all(flows[sid].history for sid in SIDS), timeout=60)
    faults = faults_of("GET", fleet)
    # The first ends are due.
    await fleet.slack.until(lambda: any(fault.struck for fault in faults), timeout=60)
    can_be_undone = [
        message
        for message in fleet.slack.workspace.messages(APPROVALS)
        if "Undo" in message.buttons
    ]
    for card in can_be_undone[:UNDOS]:
        await fleet.slack.click(ADMIN, card, "Undo")
    return faults


async def change_all(fleet: Fleet, extra: str = "") -> None:
    """Change each of the many flows, without approval; return when all of it is under way."""
    for sid in SIDS:
        text = f"add {sid} guest {extra} now because of the drill"
        await fleet.slack.command(ADMIN, "C0GENERAL", "/testusers", text)
    await fleet.slack.until(lambda: len(applying(fleet)) >= FLOWS, timeout=60)


def faults_of(method: str, fleet: Fleet) -> list[Fault]:
    """Let that method hang for each of the many flows."""
    found = [Fault(FaultKind.HANG, "flow", flow_sid=sid, method=method) for sid in SIDS]
    return [fleet.services.state.faults.add(fault) for fault in found]


def applying(fleet: Fleet) -> list[Message]:
    """The answers to those who asked for a change without approval."""
    return [item for item in fleet.seen_by(ADMIN) if "Applying now" in item.all_text]


async def seconds_of_click(story: Story, card: Message) -> float:
    """Approve; return after how many seconds the approver has the answer, and the card shows it."""
    began = seconds_now()
    answer = await story.press(APPROVER, card, "Approve", "applied")
    await story.fleet.slack.until(lambda: "Approve" not in card.buttons)
    took = seconds_now() - began
    assert "You approved" in answer.all_text, answer.all_text
    return took


async def seconds_of_alert(story: Story) -> float:
    """Let an organization be blocked; return after how many seconds the alert is posted."""
    slack, (_, organization_id) = story.fleet.slack, ORGANIZATION
    story.fleet.services.state.limits.block(ORGANIZATION, TOO_MANY_AT_ONCE, BLOCK_SECONDS)
    story.cleared_alerts.add(organization_id)
    began = seconds_now()
    await story.fleet.ask(REQUESTER, "/ratelimits", f"check {organization_id}")
    await slack.until(lambda: slack.workspace.messages(ALERTS))
    return seconds_now() - began


MANY_PROMISE = (
    "A click on another flow is answered, and its card and an alert shown, within a second; the"
    " changes are made within 30 s of the service's return."
)
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
        "200 flows hang when they are changed",
        MANY_PROMISE,
        partial(many_flows, hang=changing_hangs),
        is_busy=True,
    ),
    Drill(
        "200 flows hang when they are read",
        MANY_PROMISE,
        partial(many_flows, hang=reading_hangs, are_ends=True),
        is_busy=True,
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
