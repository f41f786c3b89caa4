"""`kill -9` right after every step that leaves a trace, of everything that the bot does."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import Message
from tests.faults.drill import Drill, Notes
from tests.support.fleet import Fleet, NoAnswerError, is_silence, running_fleet
from tests.support.kinds import database_of
from tests.support.processes import BotProcess
from tests.support.story import ALERTS, APPROVER, MARKS, REQUESTER, Story, Wish

QUIET_SECONDS = 1.5
MOST_STEPS = 60
MOST_PRESSES = 60
AT_ONCE = 3
TRUE_SECONDS = 60.0
AGAIN_SECONDS = 0.5
# A little less than handlers.entry waits for a click to be stored.
KEPT_SECONDS = 1.4
OK = 200
BLOCK_SECONDS = 4.0


@dataclass(frozen=True)
class Scene:
    """Something to be killed in.

    `before` makes it ready, undisturbed; `act` is what is disturbed, and is safe to be done again
    by people who see that nothing came of it.
    """

    name: str
    before: Callable[[Story], Awaitable[Message | None]]
    act: Callable[[Story, Message | None], Awaitable[None]]
    settings: tuple[tuple[str, str], ...] = ()


async def every_step(notes: Notes, scene: Scene) -> None:
    """Count the steps of an undisturbed run, then die at each of them in a run of its own."""
    count, names = await one_run(notes, scene, 0)
    assert 0 < count <= MOST_STEPS, f"{count} steps"
    notes.seen.append("an error of Slack's own, where it was killed before its answer")
    turns = asyncio.Semaphore(AT_ONCE)

    async def die(step: int) -> None:
        async with turns:
            try:
                await one_run(notes, scene, step)
            except AssertionError as error:
                raise AssertionError(f"killed after step {step} of {names}: {error}") from error

    results = await asyncio.gather(
        *(die(step) for step in range(1, count + 1)), return_exceptions=True
    )
    failures = [one for one in results if one is not None]
    if failures:
        raise failures[0]
    notes.holds(f"after each of {count} steps")


async def one_run(notes: Notes, scene: Scene, die_at: int) -> tuple[int, list[str]]:
    """Play the scene once; return how many steps were counted, and which."""
    folder = Path(notes.folder) / f"{scene.name.split()[0]}-{die_at}"
    folder.mkdir()
    launcher = ("-m", "tests.support.launch", "--die-at", str(die_at))
    settings = dict(scene.settings)
    async with (
        database_of(notes.database, str(folder)) as url,
        running_fleet(url, 0, inventory_watch="off", **settings) as fleet,
    ):
        first, story = await fleet.add(launcher), Story(fleet)
        card = await scene.before(story)
        os.kill(first.pid, signal.SIGUSR1)
        successor = asyncio.create_task(replace(fleet, first))
        try:
            await scene.act(story, card)
            await come_true(notes, story, die_at)
        finally:
            if first.is_running:
                successor.cancel()
            await asyncio.gather(successor, return_exceptions=True)
        if die_at == 0:
            await asyncio.sleep(QUIET_SECONDS)
        await notes.all_holds(story, by_command=False)
        return steps_of(first)


async def come_true(notes: Notes, story: Story, die_at: int) -> None:
    """All must come true; how long that took counts where somebody died."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await story.comes_true(TRUE_SECONDS)
    took = loop.time() - began
    if die_at:
        notes.recovered_seconds = max(took, notes.recovered_seconds or 0.0)
        assert took <= 30.0, f"recovered only after {took:.0f} s"


async def replace(fleet: Fleet, first: BotProcess) -> None:
    """Start another process when the first has died."""
    await first.ended()
    await fleet.add()


def steps_of(process: BotProcess) -> tuple[int, list[str]]:
    """What the process counted."""
    steps = [json.loads(line) for line in process.lines if line.startswith('{"step"')]
    return len(steps), [f"{one['job'] or 'answer'}:{one['what']}" for one in steps]


# What people do. Where Slack shows them that nothing came of it, they do it again.


async def pressed(story: Story, user: str, card: Message, button: str, becomes: str) -> None:
    """Press until the bot takes the click.

    An acknowledgement that came late may have been given before the click was stored: Slack waits
    three seconds for it. Who then sees nothing presses again.
    """
    for _ in range(MOST_PRESSES):
        before = len(story.fleet.seen_by(user))
        delivery = await story.fleet.slack.click(user, card, button)
        if delivery.status == OK and delivery.seconds < KEPT_SECONDS:
            break
        if delivery.status == OK and await sees_something(story, user, before):
            break
        await asyncio.sleep(AGAIN_SECONDS)
    story.becomes(card, becomes)


async def sees_something(story: Story, user: str, before: int) -> bool:
    """Whether the person gets an answer."""
    try:
        await story.fleet.answer(user, after=before)
    except NoAnswerError:
        return False
    return True


async def asked(story: Story, extra: str = "") -> Message:
    """Ask; look for the card before asking again."""
    identity = story.new_identity()
    story.wishes[identity] = Wish(identity, "welcome")
    for _ in range(MOST_PRESSES):
        try:
            wish = f"add welcome {identity} {extra}"
            answer = await story.fleet.ask(REQUESTER, "/testusers", wish)
        except NoAnswerError:
            answer = None
        if answer is not None and not is_silence(answer):
            break
        # Only clicks are durable. Who sees nothing looks for the card before asking again.
        with suppress(AssertionError):
            return await story.card(identity)
    return await story.card(identity)


async def pending(story: Story) -> Message:
    """A request that waits."""
    return await story.request()


async def applied(story: Story, extra: str = "") -> Message:
    """A request that is applied."""
    card = await story.request(extra=extra)
    await story.press(APPROVER, card, "Approve", "applied")
    await story.comes_true()
    return card


async def ask(story: Story, _: Message | None) -> None:
    """Ask for a test user."""
    await asked(story)


async def approve(story: Story, card: Message) -> None:
    """Approve, until it is applied."""
    await pressed(story, APPROVER, card, "Approve", "applied")


async def deny(story: Story, card: Message) -> None:
    """Deny with a reason: press until the form opens, send it until the bot takes it."""
    slack = story.fleet.slack
    for _ in range(MOST_PRESSES):
        view = slack.workspace.open_view(APPROVER)
        if view is None:
            await slack.click(APPROVER, card, "Deny")
        elif (await slack.submit(APPROVER, view, {"Reason": "not now"})).status == OK:
            break
        await asyncio.sleep(AGAIN_SECONDS)
    story.becomes(card, "denied")


async def failed(story: Story) -> Message:
    """A request that could not be applied."""
    card = await story.request()
    fault = story.fleet.services.state.faults.add(Fault(FaultKind.STATUS, "flow"))
    await story.press(APPROVER, card, "Approve", "failed")
    await story.fleet.slack.until(lambda: MARKS["failed"] in card.text, timeout=30)
    fault.lift()
    return card


async def retry(story: Story, card: Message) -> None:
    """Try again, until it is applied."""
    await pressed(story, APPROVER, card, "Retry", "applied")


async def cancel(story: Story, card: Message) -> None:
    """Cancel one's own request."""
    await pressed(story, REQUESTER, card, "Cancel", "cancelled")


async def expire(story: Story, card: Message) -> None:
    """Let the request be remembered, and end."""
    story.becomes(card, "expired")


async def end(story: Story, card: Message) -> None:
    """Let the grant end."""
    story.of(card).ended = True


async def listed(story: Story) -> None:
    """The organizations are known."""
    await story.fleet.ask(REQUESTER, "/orgs")


async def alert(story: Story, _: Message | None) -> None:
    """Let an organization be blocked, and somebody notice: an alert opens, and clears by itself."""
    at = ("jp", "80004410")
    story.fleet.services.state.limits.block(at, 1070, BLOCK_SECONDS)
    story.cleared_alerts.add(at[1])
    for _ in range(MOST_PRESSES):
        with suppress(NoAnswerError):
            answer = await story.fleet.ask(REQUESTER, "/ratelimits", f"check {at[1]}")
            if "refused a call" in answer.all_text:
                break
        if story.fleet.slack.workspace.messages(ALERTS):
            break
        # Nobody has met the block yet.
        await asyncio.sleep(AGAIN_SECONDS)
        story.fleet.services.state.limits.block(at, 1070, BLOCK_SECONDS)


async def nothing(story: Story) -> None:
    """Nothing to make ready."""


SCENES = (
    Scene("ask", nothing, ask),
    Scene("approve and apply", pending, approve),
    Scene("deny", pending, deny),
    Scene("cancel", pending, cancel),
    Scene("retry", failed, retry),
    Scene(
        "remind and expire",
        pending,
        expire,
        (("request_hours", "0.0015"), ("remind_hours", "0.0007")),
    ),
    Scene("alert and clear", listed, alert),
    Scene("end a grant", partial(applied, extra="for 5s"), end),
)
PROMISE = (
    "Killed after any commit or call, it is finished by another process (SQLite: after a restart):"
    " once, the card true, the requester told once."
)
DRILLS = tuple(
    Drill(f"kill -9 at every step: {scene.name}", PROMISE, partial(every_step, scene=scene))
    for scene in SCENES
)
