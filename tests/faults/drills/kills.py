"""Drills that kill the bot with `kill -9` after each step that has an external effect."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import select

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.testusers.tables import flow_posts
from sandbox.slack.messages import Message
from tests.faults.drill import Drill, Notes
from tests.faults.drills import acts
from tests.faults.drills.acts import IN_DOUBT_SECONDS
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.processes import BotProcess
from tests.support.story import TRUE_SECONDS, Story

QUIET_SECONDS = 1.5
MOST_STEPS = 60
AT_ONCE = 3


@dataclass(frozen=True)
class Scene:
    """An action during which the bot is killed.

    `before` prepares the scene. The bot is killed during `act`, which people can safely repeat if
    they see no result.
    """

    name: str
    before: Callable[[Story], Awaitable[Message | None]]
    act: Callable[[Story, Message | None], Awaitable[None]]
    settings: tuple[tuple[str, str], ...] = ()


async def every_step(notes: Notes, scene: Scene) -> None:
    """Count the steps in a normal run.

    Then start a new run for each step, and kill the bot after that step.
    """
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
    failures = [result for result in results if result is not None]
    if failures:
        raise failures[0]
    notes.holds(f"after each of {count} steps")


async def one_run(notes: Notes, scene: Scene, die_at: int) -> tuple[int, list[str]]:
    """Run the scene once. Return the number of steps and the name of each step."""
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
            await come_true(notes, story, successor if die_at else None)
        finally:
            if first.is_running:
                successor.cancel()
            await asyncio.gather(successor, return_exceptions=True)
        if die_at == 0:
            await asyncio.sleep(QUIET_SECONDS)
        await notes.all_holds(story, by_command=False)
        return steps_of(first)


async def come_true(notes: Notes, story: Story, successor: asyncio.Task[float] | None) -> None:
    """Wait for the expected state, and measure the recovery time if the bot was killed."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await story.comes_true(TRUE_SECONDS + IN_DOUBT_SECONDS)
    took = loop.time() - began
    if successor:
        notes.recovered_seconds = max(took, notes.recovered_seconds or 0.0)
        allowed = await successor
        assert took <= allowed, f"recovered only after {took:.0f} s, not {allowed:.0f} s"


async def replace(fleet: Fleet, first: BotProcess) -> float:
    """Start a new process when the first process has ended.

    Return how many seconds the new process may take to finish the work.
    """
    await first.ended()
    database = Database(fleet.environment["DATABASE_URL"], SystemClock())
    async with database.read_only() as tx:
        in_doubt = await tx.connection.scalar(select(flow_posts.c.id).limit(1))
    await database.close()
    await fleet.add()
    return TRUE_SECONDS + (IN_DOUBT_SECONDS if in_doubt else 0.0)


def steps_of(process: BotProcess) -> tuple[int, list[str]]:
    """Return the number and names of the steps that the process printed."""
    steps = [json.loads(line) for line in process.lines if line.startswith('{"step"')]
    return len(steps), [f"{step['job'] or 'answer'}:{step['what']}" for step in steps]


SCENES = (
    Scene("ask", acts.nothing, acts.ask),
    Scene("now", acts.nothing, acts.ask_now),
    Scene("approve and apply", acts.pending, acts.approve),
    Scene("approve by two", acts.pending, acts.approve_by_two, (("approvals_needed", "2"),)),
    Scene("deny", acts.pending, acts.deny),
    Scene("cancel", acts.pending, acts.cancel),
    Scene("retry", acts.failed, acts.retry),
    Scene("undo", acts.applied, acts.undo),
    Scene(
        "remind and expire",
        acts.pending,
        acts.expire,
        (("request_hours", "0.0015"), ("remind_hours", "0.0007")),
    ),
    Scene("alert and clear", acts.listed, acts.alert),
    Scene("Home tabs are open", acts.pending_at_home, acts.open_and_cancel),
    Scene("end a grant", partial(acts.applied, extra="for 5s"), acts.end),
)
PROMISE = (
    "Killed after any commit or call, it is finished by another process (SQLite: after a restart):"
    " once, the card true, the requester told once."
)
DRILLS = tuple(
    Drill(f"kill -9 at every step: {scene.name}", PROMISE, partial(every_step, scene=scene))
    for scene in SCENES
)
