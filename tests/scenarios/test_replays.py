"""Each signed request takes effect only once, even if several processes receive it."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select

from bot.ops.clock import SystemClock
from bot.slack.tables import received_events
from bot.store.engine import Database
from bot.store.tables import jobs
from bot.testusers.tables import requests
from sandbox.patience import PATIENCE_SECONDS
from sandbox.services.state import WELCOME_FLOW
from tests.support.fleet import Fleet, running_fleet

SETTINGS = {"inventory_watch": "off", "commands_per_minute": "0"}
WHO = "+15559999"


@asynccontextmanager
async def recorded_fleet(url: str, count: int):
    """Run the bot, and record each request that Slack sends."""
    async with running_fleet(url, count, **SETTINGS) as fleet:
        deliverer, sent = fleet.slack._deliverer, []
        send = deliverer.raw

        async def record(body: str, headers: dict[str, str]):
            sent.append((body, headers))
            return await send(body, headers)

        deliverer.raw = record
        yield fleet, sent


async def replay_everywhere(fleet: Fleet, sent: list) -> None:
    """Send all requests to every process again. If there is only one process, restart it first."""
    if len(fleet.processes) == 1:
        await fleet.processes[0].stop()
        await fleet.add()
    for process in (item for item in fleet.processes if item.is_running):
        for body, headers in sent:
            url = f"{process.address}/slack/events"
            async with fleet.session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 200


async def rows(url: str, *queries) -> list[list]:
    database = Database(url, SystemClock())
    try:
        async with database.read_only() as tx:
            return [(await tx.connection.execute(query)).all() for query in queries]
    finally:
        await database.close()


async def until_done(url: str, kind: str) -> None:
    """Wait until no jobs of this kind are left. A job is deleted shortly after its work is done."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        # Only the other process knows the moment.
        while (await rows(url, select(jobs.c.key).where(jobs.c.kind == kind)))[0]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def until_answered_everywhere(fleet: Fleet, outcome: str, times: int) -> None:
    """Wait until the logs show that the processes have handled all the repeated requests."""

    def noticed() -> bool:
        lines = [line for process in fleet.processes for line in process.lines]
        return sum(f'"{outcome}"' in line for line in lines) >= times

    await fleet.slack.until(noticed)


@pytest.mark.postgres
async def test_replayed_now_acts_once_over_all_processes(postgres_url):
    async with recorded_fleet(postgres_url, 2) as (fleet, sent):
        flow = fleet.services.state.flows[WELCOME_FLOW]
        await fleet.ask("U0ADMIN", "/testusers", f"add welcome {WHO} now because urgent")
        await fleet.slack.until(lambda: WHO in flow.identities)
        await until_done(postgres_url, "testusers.apply")
        now = list(sent)
        others = [identity for identity in flow.identities if identity != WHO]
        fleet.services.state.edit_flow(WELCOME_FLOW, others)
        await replay_everywhere(fleet, now)
        await until_answered_everywhere(fleet, "replayed", 1)
        # A stopping process finishes the first delivery's job, which has nothing left to do.
        await asyncio.gather(*(process.stop() for process in fleet.processes if process.is_running))
        stored, waiting = await rows(
            postgres_url,
            select(requests.c.id),
            select(jobs.c.key).where(jobs.c.kind == "testusers.apply"),
        )
        assert (len(stored), waiting) == (1, [])
        assert list(flow.identities) == others


async def test_replayed_click_is_stored_once_after_a_restart(sqlite_url):
    async with recorded_fleet(sqlite_url, 1) as (fleet, sent):
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {WHO}")
        card = (await fleet.slack.until(lambda: fleet.slack.workspace.messages("C0APPROVALS")))[0]
        sent.clear()
        await fleet.slack.click("U0OPERATOR", card, "Cancel")
        await fleet.slack.until(lambda: "Cancelled" in card.all_text)
        await until_done(sqlite_url, "testusers.interaction")

        def cancelled() -> int:
            lines = [line for process in fleet.processes for line in process.lines]
            return sum("testusers.cancel" in line and "replayed" not in line for line in lines)

        await fleet.slack.until(cancelled)
        await replay_everywhere(fleet, sent)
        known, clicks = await rows(
            sqlite_url,
            select(received_events.c.event_id),
            select(jobs.c.key).where(jobs.c.kind == "testusers.interaction"),
        )
        assert sum(item.event_id.startswith("signature:") for item in known) == 2
        assert clicks == []
        assert cancelled() == 1
