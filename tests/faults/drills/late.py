"""What comes late, or to where nothing is any more."""

import asyncio
import random

import psycopg

from tests.faults.drill import Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.postgres import connect
from tests.support.processes import BotProcess
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, REQUESTER, Story

FROZEN_SECONDS = 25.0
OLD_CHANNEL, NEW_CHANNEL = "C0APPROVALS", "C0ALERTS"


async def frozen_with_a_row(notes: Notes) -> None:
    """One of two processes stands still while it holds the row that all who write need."""
    async with (
        database_of("postgres", notes.folder) as url,
        # Whoever types too much in a minute writes nothing.
        running_fleet(url, commands_per_minute="0") as fleet,
    ):
        (first,) = fleet.processes
        story = Story(fleet)
        waiting = await story.request()
        await freeze_inside_a_transaction(fleet, first, url)
        began = seconds_now()
        fleet.processes.remove(first)
        try:
            async with notes.recovery():
                await fleet.add()
                await pressed(notes, story)
            await story.press(APPROVER, waiting, "Approve", "applied")
            await story.comes_true()
            await lasts(began, FROZEN_SECONDS)
        finally:
            fleet.processes.append(first)
            first.thaw()
        await notes.all_holds(story)


async def pressed(notes: Notes, story: Story) -> None:
    """Ask for something as soon as anything can be written."""

    async def is_written() -> bool:
        answer = await story.fleet.ask("U0VIEWER", "/testusers", "add welcome nobody")
        return "operator" in answer.all_text

    await notes.until(is_written)


async def freeze_inside_a_transaction(fleet: Fleet, process: BotProcess, url: str) -> None:
    """Stop the process again and again while it writes, until it has the row when it stops."""
    watcher = await connect(url)
    try:
        for number in range(300):
            texts = [f"preset save p{number}-{item} +{item}" for item in range(4)]
            asking = [
                asyncio.create_task(fleet.slack.command(REQUESTER, OLD_CHANNEL, "/testusers", text))
                for text in texts
            ]
            await asyncio.sleep(random.uniform(0.0, 0.06))
            process.freeze()
            if await is_locked(watcher):
                # Slack gives up on them after three seconds.
                await asyncio.gather(*asking, return_exceptions=True)
                return
            process.thaw()
            await asyncio.gather(*asking, return_exceptions=True)
    finally:
        await watcher.close()
    raise AssertionError("the process never stopped inside a transaction")


async def is_locked(watcher: psycopg.AsyncConnection[tuple[int]]) -> bool:
    """Whether somebody holds the row, now and in a moment: a commit on its way is over by then."""
    for _ in range(2):
        try:
            await watcher.execute("SELECT 1 FROM audit_head FOR UPDATE NOWAIT")
        except psycopg.errors.LockNotAvailable:
            await asyncio.sleep(0.2)
            continue
        return False
    return True


DRILLS = (
    Drill(
        "a process freezes while it holds a row",
        "The others write again within 30 s; what it had not committed did not happen.",
        frozen_with_a_row,
        ("postgres",),
    ),
)
