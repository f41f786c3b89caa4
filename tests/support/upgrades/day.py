"""Fills a database in a simulated day.

This runs with several versions of the bot, so it uses only commands, buttons and the services.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from tests.support.steady import LaterClock
from tests.support.world import ABEL, ADA, ADAM, OTTO, SURVEY, WELCOME, World, running_world

PILOT, BETA, NEW_BETA, GAMMA = (f"FW{number:032}" for number in (3, 4, 5, 6))
ALIASES = {"welcome": WELCOME, "survey": SURVEY, "pilot": PILOT, "beta": BETA, "gamma": GAMMA}
FLOWS = (*ALIASES, NEW_BETA)
POLICIES = {
    "survey": {"approvals_needed": 2},
    "pilot": {"auto": {"from": [OTTO], "longest": "4h", "a_day": 50}, "auto_remove": True},
}
DAY = {"flow_aliases": ALIASES, "flow_policies": POLICIES, "retain_days": 2}
# On the next morning, an alias means another flow, and no rule approves anything.
MORNING = {
    "flow_aliases": {**ALIASES, "beta": NEW_BETA},
    "flow_policies": {"survey": POLICIES["survey"]},
}
BEGIN = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
# The clock is moved by this much at once.
PAUSE = timedelta(seconds=5)
OUTSIDE = "console@example.com"
LISTS = {
    WELCOME: ["+15550199"],
    SURVEY: [],
    PILOT: [],
    BETA: [],
    NEW_BETA: ["+15550198"],
    GAMMA: [],
}
UNSEEN = "+15550130\u200b"
DECOMPOSED = "zoe\u0308@example.com"
RESPELLED = {"Upper.Case@Example.com": "upper.case@example.com", DECOMPOSED: "zo\u00eb@example.com"}


class DayClock(LaterClock):
    """A clock that stands still unless a test moves it forward."""

    def __init__(self, at: datetime) -> None:
        super().__init__()
        self._at = at

    def now(self) -> datetime:
        """Return the simulated time."""
        return self._at + self.ahead


@asynccontextmanager
async def opened(
    url: str, clock: DayClock, lists: dict[str, list[str]], **settings: Any
) -> AsyncIterator[World]:
    """Run a bot with the day's settings on a database."""
    services = ServicesState(now=lambda: clock.now().timestamp())
    services.flows.clear()
    for sid, listed in lists.items():
        services.edit_flow(sid, listed)
    async with running_world(
        url,
        clock=clock,
        services=services,
        inventory_watch="off",
        commands_per_minute="0",
        **{name: json.dumps(value) for name, value in settings.items()},
    ) as world:
        world.slack.until = world.until  # type: ignore[method-assign]
        yield world


class Day:
    """Makes and decides requests of all kinds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = world.services.state

    async def pause(self, seconds: float) -> None:
        """Let time pass, and then wait until the bot is idle."""
        await self.world.later(self.world.clock.ahead + timedelta(seconds=seconds))
        await settle(self.world, 5)

    async def asked(self, text: str, by: str = OTTO) -> Message:
        """Make a request, and return its card."""
        await self.pause(20)
        return await self.world.asked(text, by)

    async def undo(self, card: Message, by: str = OTTO) -> Message:
        """Ask to undo a change, and return the new card."""
        await self.pause(20)
        before = len(self.world.cards())
        await self.world.click(by, card, "Undo")
        return await self.world.card(before)

    async def approved(self, card: Message, *words: str, by: str = ADA) -> Message:
        """Approve a request, and wait until its card contains these words."""
        await self.pause(20)
        await self.world.slack.click(by, card, "Approve")
        await self.world.shows(card, *(words or ("*Applied*",)))
        return card

    async def applied(self, text: str, by: str = OTTO) -> Message:
        """Make and approve a request."""
        return await self.approved(await self.asked(text, by))

    async def edit(self, sid: str, *added: str, removed: tuple[str, ...] = ()) -> None:
        """Change a list as someone in the vendor's console does.

        For a minute after a change, the bot wouldn't believe a list without the change.
        """
        await self.pause(70)
        listed = [item for item in self.state.flows[sid].identities if item not in removed]
        self.state.edit_flow(sid, [*listed, *added])

    def fail(self, sid: str, kind: FaultKind, **more: Any) -> Fault:
        """Make calls for a flow fail."""
        return self.state.faults.add(Fault(kind, "flow", flow_sid=sid, **more))


async def settle(world: World, seconds: int) -> None:
    """Let this many seconds pass while the bot works."""
    until = world.clock.ahead + timedelta(seconds=seconds)
    while world.clock.ahead < until:
        await world.later(min(until, world.clock.ahead + PAUSE))


async def live(day: Day) -> None:
    """Make requests that end in every way, and leave some open."""
    await first_days(day)
    await ended(day)
    await applied(day)
    await undone(day)
    await respelled(day)
    await failed(day)
    await closed(day)
    await pending(day)
    await last_minute(day)


async def first_days(day: Day) -> None:
    """Make requests that are older than the last day."""
    await day.applied("add welcome +15550101 because the request is deleted later")
    await day.applied("add welcome +15550102 for 20d")
    await day.pause(24.5 * 3600)
    await day.pause(1.5 * 3600)
    old = await day.asked("add survey old.endless@example.com because OPS-1")
    await day.world.click(ADA, old, "Approve")
    await day.approved(old, by=ABEL)
    await day.applied("add welcome +15550103 +15550104")
    await day.asked("add welcome +15550105 because nobody decides")
    await day.pause(22.2 * 3600)
    await day.pause(24.2 * 3600)
    await day.pause(17.5 * 3600)


async def ended(day: Day) -> None:
    """Let access end on time, and after somebody else has removed the person."""
    await day.applied("add welcome +15550110 for 30m because a short test")
    await day.applied("add welcome +15550111 +15550112 for 35m")
    await day.edit(WELCOME, removed=("+15550112",))
    await day.pause(3600)


async def applied(day: Day) -> None:
    """Apply additions, removals, extensions, duplicates and changes without approval."""
    await day.applied("add welcome +15550113 because no end")
    await day.applied("add welcome +15550114 +15550115 for 6h because OPS-2")
    await day.applied("add welcome +15550116 for 3h")
    await day.applied("add welcome +15550116 for 9h because an extension")
    await day.applied("add welcome +15550117 for 5h")
    await day.applied("add welcome +15550117 for 2h because a shortening")
    await day.applied("add welcome +15550118 for 8h")
    await day.applied("remove welcome +15550118 because it had timed access")
    await day.applied("remove welcome +15550104 because it had no end")
    first = await day.asked("add welcome +15550119 for 7h")
    second = await day.asked("add welcome +15550119 +15550120 for 4h", ADA)
    await day.approved(first)
    await day.approved(second, by=ABEL)
    await twice(day, "add welcome +15550161")
    await twice(day, "add welcome +15550129")
    await twice(day, "remove welcome +15550129")
    await twice(day, "add survey Gus@example.com for 9h", "add survey gus@example.com for 9h")
    await day.world.ask(ADAM, "/testusers", "add welcome +15550121 for 4h now because urgent")
    await day.world.slack.until(lambda: "+15550121" in day.world.flow.identities)
    await day.world.ask(OTTO, "/testusers", "add pilot +15550122 for 2h because a rule approves")
    await day.world.slack.until(lambda: "+15550122" in day.state.flows[PILOT].identities)
    await day.world.ask(OTTO, "/testusers", "add pilot +15550123 for 3h")
    await day.world.slack.until(lambda: "+15550123" in day.state.flows[PILOT].identities)
    await day.world.ask(OTTO, "/testusers", "remove pilot +15550123")
    await day.world.slack.until(lambda: "+15550123" not in day.state.flows[PILOT].identities)
    await day.applied("add beta +15550124 for 1d")
    await day.applied("add beta +15550125")
    # Somebody removes a person in the vendor's console, and adds others.
    await day.applied("add welcome +15550126 for 10h")
    await day.edit(WELCOME, OUTSIDE, "+15550127", removed=("+15550126",))
    await day.world.ask(OTTO, "/testusers", 'preset save team +15550128 "team lead"')
    await day.applied("add welcome @team until tomorrow 9:00")


async def twice(day: Day, text: str, other: str = "") -> None:
    """Let two people ask for the same before either request is approved."""
    first = await day.asked(text)
    await day.pause(20)
    before = len(day.world.cards())
    reply = await day.world.ask(ADAM, "/testusers", other or text)
    if "Ask anyway" in reply.buttons:
        await day.world.slack.click(ADAM, reply, "Ask anyway")
    second = await day.world.card(before)
    for card in (first, second):
        await day.world.slack.click(ADA, card, "Approve")
        await settle(day.world, 2)
        if "Approve" in card.buttons:
            await day.world.slack.click(ABEL, card, "Approve")
            await settle(day.world, 2)
        await day.world.shows(card, "*Applied")


async def undone(day: Day) -> None:
    """Undo an addition, a removal, an extension and a shortening."""
    addition = await day.applied("add welcome +15550131 for 3h")
    await day.approved(await day.undo(addition))
    await day.applied("add welcome +15550132 for 5h")
    removal = await day.applied("remove welcome +15550132")
    await day.approved(await day.undo(removal))
    await day.applied("add welcome +15550133 for 4h")
    extension = await day.applied("add welcome +15550133 for 12h")
    await day.approved(await day.undo(extension))
    await day.applied("add welcome +15550134")
    shortening = await day.applied("add welcome +15550134 for 2h")
    await day.approved(await day.undo(shortening))
    # An undo that was denied leaves the change as it was.
    kept = await day.applied("add welcome +15550135 for 6h")
    denied = await day.undo(kept)
    await deny(day, denied, "Still needed.")


async def respelled(day: Day) -> None:
    """Add people whom the service stores in another spelling, and some that look alike."""
    for identity, stored in RESPELLED.items():
        card = await day.asked(f'add welcome "{identity}" for 11h')
        await stored_as(day, card, [*day.world.flow.identities, stored])
        await day.world.shows(card, "*Applied*")
    await day.edit(WELCOME, "Dana@Example.com", UNSEEN)
    await day.applied("add welcome Erin@Example.com for 9h")


async def stored_as(day: Day, card: Message, listed: list[str]) -> None:
    """Approve a request, and let the service store another list than the one it gets."""
    other = FaultKind.OTHER_LIST
    fault = day.fail(WELCOME, other, method="POST", times=1, identities=tuple(listed))
    await day.world.slack.click(ADA, card, "Approve")
    await day.state.until(lambda: bool(fault.struck))
    day.state.edit_flow(WELCOME, listed)


async def failed(day: Day) -> None:
    """Let changes fail: refused, after errors, in part, and after a retry."""
    day.fail(SURVEY, FaultKind.STATUS, method="POST", status=400, message="Not this one.", times=1)
    refused = await day.asked("add survey +15550140 for 6h because OPS-3")
    await day.world.click(ADA, refused, "Approve")
    await day.approved(refused, "*Failed:", by=ABEL)
    day.fail(WELCOME, FaultKind.STATUS, method="POST", status=400, message="Not now.", times=1)
    retried = await day.approved(await day.asked("add welcome +15550141 for 6h"), "*Failed:")
    await day.pause(60)
    await day.world.slack.click(ADA, retried, "Retry")
    await day.world.shows(retried, "*Applied*")
    # The service loses one of two people.
    listed = [*day.world.flow.identities, "+15550143"]
    half = await day.asked("add welcome +15550142 +15550143 for 10h because half is stored")
    await stored_as(day, half, listed)
    day.fail(WELCOME, FaultKind.STATUS, method="POST", status=400, message="Full.", times=1)
    await day.world.shows(half, "*Failed:")
    day.state.faults.lift()


async def closed(day: Day) -> None:
    """Deny and cancel requests."""
    await deny(day, await day.asked("add welcome +15550144 for 2h"), "Use *survey* instead.")
    cancelled = await day.asked("remove welcome +15550127 because of a mistake")
    await day.world.slack.click(OTTO, cancelled, "Cancel")
    await day.world.shows(cancelled, "Cancelled")


async def pending(day: Day) -> None:
    """Leave requests of all kinds open."""
    await day.asked("add welcome +15550150 for 2h because OPS-4")
    await day.asked("add welcome +15550151 until tomorrow 9:00")
    await day.asked("add welcome @team +15550152 for 3h", ADA)
    await day.asked('add welcome "two words" +15550153', ADA)
    await day.asked(f"remove welcome +15550114 {OUTSIDE} because both ways")
    await day.asked("remove welcome +15550114", ADA)
    await day.asked("add welcome +15550115 for 15h because longer")
    await day.asked("add welcome +15550113 for 1h because shorter", ADA)
    await day.asked("add welcome +15550102 because without an end", ADA)
    once = await day.asked("add survey +15550154 for 4h")
    await day.world.click(ADA, once, "Approve")
    await day.asked("add welcome ERIN@example.com for 20h")
    await day.asked("remove welcome +15550130", ADA)
    await day.asked("remove welcome dana@example.com", ADA)
    await day.asked("add beta +15550155 for 4h because the alias changes")
    await day.asked("remove beta +15550125")
    await day.undo(await day.applied("add welcome +15550156 for 6h"))
    longer = await day.applied("add welcome +15550156 for 8h")
    await day.undo(longer)


async def last_minute(day: Day) -> None:
    """Leave a failed change that might have been made, a POST in doubt, and unsent messages."""
    unsure = await day.asked("add gamma +15550160 for 6h because nobody knows the outcome")
    cut = day.fail(GAMMA, FaultKind.CUT, method="POST", times=1)
    await day.world.slack.click(ADA, unsure, "Approve")
    await day.state.until(lambda: bool(cut.struck))
    day.state.faults.add(unreadable())
    await day.world.shows(unsure, "*Failed")
    doubted = await day.asked("add beta +15550157 for 5h because the answer is lost")
    denied = await day.asked("add survey +15550158 for 4h because Slack is away", ADA)
    await deny(day, denied, "Too late today.")
    for method in ("chat.postMessage", "chat.update"):
        day.world.slack.workspace.faults.ratelimit(method, retry_after=600, times=None)
    await day.world.slack.command(OTTO, "C0GENERAL", "/testusers", "add survey +15550159 for 1h")
    await settle(day.world, 2)
    hang = day.fail(BETA, FaultKind.HANG, method="POST", times=1, after_work=True)
    await day.world.slack.click(ADA, doubted, "Approve")
    await hang.reached()


def unreadable() -> Fault:
    """Return a fault that leaves a flow's list unknown."""
    return Fault(FaultKind.STATUS, "flow", flow_sid=GAMMA, method="GET", status=503)


async def deny(day: Day, card: Message, reason: str) -> None:
    """Deny a request, and give a reason."""
    await day.pause(20)
    await day.world.slack.click(ADA, card, "Deny")
    form = await day.world.form(ADA)
    await day.world.slack.submit(ADA, form, {"Reason": reason})
    await day.world.slack.until(lambda: "Approve" not in card.buttons)
