"""The actors in a soak test make requests, edit lists, block organizations, and kill processes."""

import asyncio
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from sandbox.people import Person
from sandbox.slack.filling import NotThereError
from sandbox.slack.messages import Message, View
from tests.support.fleet import ANSWER_SECONDS, SLACKBOT, Fleet, NoAnswerError, is_silence
from tests.support.steady import seconds_now
from tests.support.story import (
    APPROVALS,
    APPROVER,
    FLOWS,
    MARKS,
    REQUESTER,
    SECOND,
    ExpectedRequest,
    Story,
)

CHECKERS = ("U0CHECK1", "U0CHECK2", "U0CHECK3")
BUSY = ("eu", "20077314")
BLOCKED = (("jp", "80004410"), ("ca", "90001276"), ("in", "60018842"), ("sa", "30002218"))
LOOK_SECONDS = 40.0
AGAIN_SECONDS = 0.3
# Grants end by themselves, so grants with an end are on the other flow.
TIMED, EDITED = "welcome", "survey"
EDITS = 0.2
OK = 200
# The answer of a new process that has not reached Slack yet.
NOT_YET = "Please try again in a moment"


@dataclass(frozen=True)
class Pace:
    """Defines the length of a soak test and the faults that occur.

    `seconds` is the time during which the actors start new work. `kill_every` is the longest wait,
    in seconds, before a process is killed. `code` is the error code of each block, and
    `block_seconds` is the length of each block. `launcher` starts a process. `answer_seconds` is
    the time after which a command without an answer counts as lost.
    """

    seconds: float
    kill_every: float
    code: int
    block_seconds: float
    launcher: tuple[str, ...] = ("-m", "bot")
    answer_seconds: float = ANSWER_SECONDS


@dataclass
class Soak:
    """Holds the bot processes, a model of the expected results, and statistics.

    No new work begins after the time `ends_at`.
    """

    fleet: Fleet
    story: Story
    dice: random.Random
    pace: Pace
    ends_at: float
    counts: Counter = field(default_factory=Counter)
    answer_seconds: list[float] = field(default_factory=list)
    blocks: list[tuple[tuple[str, str], float, float]] = field(default_factory=list)
    undecided: asyncio.Queue = field(default_factory=asyncio.Queue)
    on_their_way: list[Message] = field(default_factory=list)

    @property
    def is_on(self) -> bool:
        """True while new work may begin."""
        return seconds_now() < self.ends_at

    async def pause(self, most: float) -> None:
        """Wait for a short random time."""
        await asyncio.sleep(self.dice.uniform(0.2, 1.0) * most)

    async def ask(self, user: str, command: str, text: str) -> Message:
        """Type a command and return the answer.

        A missing answer isn't an error, because the process may have been killed.
        """
        began = seconds_now()
        try:
            answer = await self.fleet.ask(user, command, text)
        except NoAnswerError:
            # Only clicks are durable: a command dies with its process.
            self.counts["commands lost with a killed process"] += 1
            return Message("C0GENERAL", "", SLACKBOT, "lost")
        if is_silence(answer):
            self.counts["answers by Slack instead"] += 1
        else:
            self.answer_seconds.append(seconds_now() - began)
        return answer


async def requester(soak: Soak) -> None:
    """Make one request after another, each to add a test user."""
    story = soak.story
    while soak.is_on:
        identity, flow = story.new_identity(), soak.dice.choice(list(FLOWS))
        duration = soak.dice.choice(["", "for 6s"]) if flow == TIMED else ""
        story.expected_requests[identity] = ExpectedRequest(identity, flow)
        card = await asked(soak, identity, f"add {flow} {identity} {duration}")
        soak.undecided.put_nowait((card, bool(duration)))
        await soak.pause(1.0)


async def asked(soak: Soak, identity: str, text: str) -> Message:
    """Send a command, and return the new request's card.

    If the bot doesn't answer and no card appears, send the command again.
    """
    while True:
        before = len(soak.fleet.slack.workspace.all_messages)
        answer = await soak.ask(REQUESTER, "/testusers", text)
        if not is_silence(answer):
            assert "Sent to" in answer.all_text, answer.all_text

        def card(since: int = before) -> Message | None:
            new = soak.fleet.slack.workspace.all_messages[since:]
            found = (m for m in new if m.channel == APPROVALS and identity in m.text)
            return next((m for m in found if not m.thread_ts and not m.only_for), None)

        try:
            return await soak.fleet.slack.until(card, timeout=LOOK_SECONDS)
        except AssertionError:
            assert is_silence(answer), f"{identity} was asked for and has no card"
            soak.counts["asked again"] += 1


async def decider(soak: Soak) -> None:
    """Approve, deny or cancel each request, or let it expire.

    Before some of the decisions, edit a list directly in the service.
    """
    while True:
        card, is_timed = await soak.undecided.get()
        expected = soak.story.of(card)
        if soak.dice.random() < EDITS:
            await edit(soak)
        act = soak.dice.choices(
            [approve, deny, cancel, both, leave], weights=[10, 2, 2, 2, 2], k=1
        )[0]
        await act(soak, card, expected)
        soak.counts[expected.state] += 1
        if expected.state == "applied" and is_timed:
            expected.ended = True
            soak.counts["ended on time"] += 1
        if expected.state == "applied" and expected.flow == EDITED:
            soak.on_their_way.append(card)
        soak.undecided.task_done()


async def edit(soak: Soak) -> None:
    """Edit a list directly in the service while the bot is not changing the list.

    The service accepts updates even if they are based on an outdated list. The bot would overwrite
    an edit that was made between its GET and POST requests.
    """
    for card in soak.on_their_way:
        is_applied = partial(shows, card, "applied")
        await soak.fleet.slack.until(is_applied, timeout=LOOK_SECONDS)
    soak.on_their_way.clear()
    soak.counts["outside edits"] += 1
    soak.story.edit(EDITED, f"by-hand-{soak.counts['outside edits']}")


def shows(card: Message, state: str) -> bool:
    """Return True if the card shows this state."""
    return MARKS[state] in card.text


async def pressed(soak: Soak, user: str, card: Message, button: str) -> str:
    """Press a button again and again until the bot answers. Return the answer."""
    while True:
        before = len(soak.fleet.seen_by(user))
        try:
            delivery = await soak.fleet.slack.click(user, card, button)
        except NotThereError:
            return expiry_read_on(card)
        if delivery.status == OK:
            answer = await answered(soak, user, before)
            return answer.all_text
        soak.counts["pressed again"] += 1
        await asyncio.sleep(AGAIN_SECONDS)


def expiry_read_on(card: Message) -> str:
    """Check that the card shows the request as expired. Return "expired"."""
    assert shows(card, "expired"), card.all_text
    return "expired"


async def answered(soak: Soak, user: str, before: int) -> Message:
    """Wait for the answer to a click.

    If the bot process was killed, another process sends the answer.
    """
    return await soak.fleet.answer(user, after=before, seconds=LOOK_SECONDS, channel=APPROVALS)


def is_too_late(said: str, expected: ExpectedRequest) -> bool:
    """Return True if the answer says that the request has expired."""
    if "expired" not in said and "too late" not in said:
        return False
    expected.state = "expired"
    return True


async def approve(soak: Soak, card: Message, expected: ExpectedRequest) -> None:
    """Have one approver approve the request."""
    said = await pressed(soak, APPROVER, card, "Approve")
    if not is_too_late(said, expected):
        assert "You approved" in said, said
        expected.state = "applied"


async def deny(soak: Soak, card: Message, expected: ExpectedRequest) -> None:
    """Have one approver deny the request and give a reason."""
    said = await denied(soak, card)
    if not is_too_late(said, expected):
        assert "You denied" in said, said
        expected.state = "denied"


async def denied(soak: Soak, card: Message) -> str:
    """Deny a request by opening and submitting the form. Return the bot's answer."""
    slack = soak.fleet.slack
    while True:
        before = len(soak.fleet.seen_by(SECOND))
        try:
            await slack.click(SECOND, card, "Deny")
        except NotThereError:
            return expiry_read_on(card)
        view = await opened(soak, before)
        if isinstance(view, Message):
            if NOT_YET not in view.all_text:
                return view.all_text
        elif view is not None:
            delivery = await slack.submit(SECOND, view, {"Reason": "not now"})
            if delivery.status == OK:
                answer = await answered(soak, SECOND, before)
                return answer.all_text
            slack.workspace.close(view)
        soak.counts["pressed again"] += 1
        await asyncio.sleep(AGAIN_SECONDS)


async def opened(soak: Soak, before: int) -> View | Message | None:
    """Wait until the bot opens a form or sends a message.

    Return None if neither a form nor a message appears in time.
    """

    def found() -> View | Message | None:
        return soak.fleet.slack.workspace.open_view(SECOND) or next(
            (m for m in soak.fleet.seen_by(SECOND)[before:] if "Working on" not in m.text), None
        )

    try:
        return await soak.fleet.slack.until(found, timeout=6)
    except AssertionError:
        return None


async def cancel(soak: Soak, card: Message, expected: ExpectedRequest) -> None:
    """Press `Cancel` first as someone without permission, and then as the requester."""
    said = await pressed(soak, CHECKERS[0], card, "Cancel")
    assert "You cancelled" not in said, said
    said = await pressed(soak, REQUESTER, card, "Cancel")
    if not is_too_late(said, expected):
        assert "You cancelled" in said, said
        expected.state = "cancelled"


async def both(soak: Soak, card: Message, expected: ExpectedRequest) -> None:
    """Approve and deny a request at the same moment.

    Exactly one of the two decisions takes effect.
    """
    yes, no = await asyncio.gather(pressed(soak, APPROVER, card, "Approve"), denied(soak, card))
    won = ["You approved" in yes, "You denied" in no]
    if not any(won) and is_too_late(yes, expected):
        return
    assert sum(won) == 1, f"{expected.identity}: {yes!r} and {no!r}"
    expected.state = "applied" if won[0] else "denied"
    soak.counts["decided by two at once"] += 1


async def leave(soak: Soak, card: Message, expected: ExpectedRequest) -> None:
    """Let the request expire."""
    expected.state = "expired"


async def checker(soak: Soak, user: str) -> None:
    """Check one busy organization again and again, one check at a time."""
    while soak.is_on:
        answer = await soak.ask(user, "/ratelimits", f"check {BUSY[1]}")
        words = answer.all_text
        soak.counts["checks passed" if "succeeded (" in words else "checks declined"] += 1
        await soak.pause(0.5)


async def blocker(soak: Soak) -> None:
    """Block one organization after another, and have an admin check each blocked organization."""
    seconds = soak.pace.block_seconds
    for at in itertools.cycle(BLOCKED):
        await soak.pause(seconds)
        if not soak.is_on:
            return
        now = time.time()
        soak.fleet.services.state.limits.block(at, soak.pace.code, seconds)
        soak.blocks.append((at, now, now + seconds))
        soak.counts["blocks by others"] += 1
        for _ in range(4):
            await soak.ask("U0ADMIN", "/ratelimits", f"check {at[1]}")
            await asyncio.sleep(seconds / 8)


async def killer(soak: Soak) -> None:
    """Repeatedly kill a random process and start a new one in its place."""
    while soak.is_on:
        await soak.pause(soak.pace.kill_every)
        victim = soak.dice.choice(
            [process for process in soak.fleet.processes if process.is_running]
        )
        await victim.kill()
        soak.counts["kills -9"] += 1
        await soak.pause(2.0)
        await soak.fleet.add(soak.pace.launcher)


def more_people(fleet: Fleet) -> None:
    """Add several operators, so that several checks can run at the same time."""
    for number, user in enumerate(CHECKERS):
        person = Person(user, f"checker{number}", f"Chris Checker {number}", "operator")
        fleet.slack.workspace.people[user] = person
