"""Drills in which the clock jumps or processes are suspended."""

import asyncio
import json
import random
import re
import socket
import time
from collections import Counter
from functools import partial
from hashlib import sha256
from pathlib import Path

import psycopg

from sandbox.services.faults import Fault, FaultKind
from tests.faults.drill import Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.postgres import connect
from tests.support.processes import BotProcess
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, REQUESTER, Story

# Slack's signatures are valid for five minutes. Older requests must be refused.
SMALL_JUMP, LARGE_JUMP = 200.0, 7200.0
FROZEN_SECONDS = 25.0


async def jumps(notes: Notes, seconds: float) -> None:
    """Set the clock to the wrong time while the bot is running, and then correct the clock."""
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


async def corrected(notes: Notes, seconds: float) -> None:
    """Correct a clock by `seconds`, live and across a restart, while a script makes many calls."""
    clock = Path(notes.folder) / "clock"
    launcher = ("-m", "tests.support.launch", "--clock", str(clock))
    clients = {
        "script": {
            "token_sha256": sha256(b"secret").hexdigest(),
            "organizations": "*",
            "methods": ["GET"],
        }
    }
    for restarts in (False, True):
        clock.write_text(str(-seconds))
        port = free_port()
        settings = {"gateway_port": port, "gateway_clients": json.dumps(clients)}
        folder = Path(notes.folder) / str(restarts)
        folder.mkdir()
        async with database_of(notes.database, str(folder)) as url, running_fleet(url, 0) as fleet:
            process = await fleet.add(launcher, **settings)
            assert await statuses(fleet, port, 85) == {200: 80, 429: 5}
            clock.write_text("0")
            if restarts:
                await process.stop()
                await fleet.add(launcher, **settings)
            # The bot's clock is compared with Slack's every 15 s.
            began = seconds_now()
            while seconds_now() - began < 2 * notes.seconds:
                await statuses(fleet, port, 5)
                await asyncio.sleep(1)
            assert not fleet.services.state.refused, fleet.services.state.refused
            earliest = time.time() + 3600
            await fleet.ask("U0ADMIN", "/testusers", "add welcome +15550142 for 1h now because x")
            ends: list[str] = []
            while not ends:
                answer = await fleet.ask("U0ADMIN", "/testusers", "list welcome")
                ends = re.findall(r"until <!date\^(\d+)", answer.all_text)
            latest = time.time() + 3600
            assert earliest - 2 <= int(ends[0]) <= latest + 2
        notes.holds("the service refused nothing, and an end is where it was said")


def free_port() -> str:
    """Return a port that nobody uses at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


async def statuses(fleet: Fleet, port: str, calls: int) -> Counter[int]:
    """Make calls through the gateway one after another, and count the answers by status."""
    center = fleet.services.state.data_centers["eu"]
    organization = center.organizations[0].organization_id
    url = f"http://127.0.0.1:{port}/eu/organizations?organization_id={organization}"
    counted = Counter[int]()
    for _ in range(calls):
        async with fleet.session.get(url, headers={"Authorization": "Bearer secret"}) as answer:
            counted[answer.status] += 1
    return counted


async def suspended(notes: Notes) -> None:
    """Freeze the only bot process for a while, as if its machine had been suspended."""
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
    """Freeze a process between its GET and POST calls, and let another process take over."""
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


OLD_CHANNEL, NEW_CHANNEL = "C0APPROVALS", "C0ALERTS"


async def frozen_with_a_row(notes: Notes) -> None:
    """Freeze one of two processes while it holds a lock on a row that every write needs."""
    async with (
        database_of("postgres", notes.folder) as url,
        # Commands from a person who exceeds the rate limit write nothing.
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
    """Keep requesting a change until the database accepts writes again."""

    async def is_written() -> bool:
        answer = await story.fleet.ask("U0VIEWER", "/testusers", "add welcome nobody")
        return "operator" in answer.all_text

    await notes.until(is_written)


async def freeze_inside_a_transaction(fleet: Fleet, process: BotProcess, url: str) -> None:
    """Freeze the process while it holds the row lock. This can take many attempts."""
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
                # Slack gives up on these deliveries after three seconds.
                await asyncio.gather(*asking, return_exceptions=True)
                return
            process.thaw()
            await asyncio.gather(*asking, return_exceptions=True)
    finally:
        await watcher.close()
    raise AssertionError("the process never stopped inside a transaction")


async def is_locked(watcher: psycopg.AsyncConnection[tuple[int]]) -> bool:
    """Return True if the row stays locked. A commit in progress locks the row only briefly."""
    for _ in range(2):
        try:
            await watcher.execute("SELECT 1 FROM audit_head FOR UPDATE NOWAIT")
        except psycopg.errors.LockNotAvailable:
            await asyncio.sleep(0.2)
            continue
        return False
    return True


JUMP_PROMISE = (
    "Nothing expires, reminds or ends early or late: the bot counts on from its start, and follows"
    " the machine's clock only where it is nearer to Slack's. While the clock is off by more than"
    " five minutes, Slack's requests look stale and are refused."
)
CORRECTION_PROMISE = (
    "No slot is free early, so the service refuses nothing, and access ends when people were told."
)
FREEZE_PROMISE = "The change is applied once, whoever ends it; what woke up late changes nothing."
DRILLS = (
    Drill("the clock jumps by 200 s", JUMP_PROMISE, partial(jumps, seconds=SMALL_JUMP)),
    Drill("the clock jumps by 2 h", JUMP_PROMISE, partial(jumps, seconds=LARGE_JUMP)),
    *(
        Drill(
            f"the clock is corrected by {step:+g} s",
            CORRECTION_PROMISE,
            partial(corrected, seconds=step),
        )
        for step in (-LARGE_JUMP, -10.0, 10.0, 120.0)
    ),
    Drill("the machine is suspended for 25 s", FREEZE_PROMISE, suspended),
    Drill("one of two processes freezes for 25 s", FREEZE_PROMISE, frozen, ("postgres",)),
    Drill(
        "a process freezes while it holds a row",
        "The others write again within 30 s; what it had not committed did not happen.",
        frozen_with_a_row,
        ("postgres",),
    ),
)
