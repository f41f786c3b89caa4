"""Starting and stopping, with time of our own."""

import asyncio

from aiohttp import web

from bot.app import gatehouse
from bot.errors import DatabaseUnavailable, SlackRateLimited, SlackUnreachable
from bot.serve import Service, until_it_works
from bot.settings import read_settings
from tests.support.clock import JumpingClock

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "a-secret-of-enough-length",
    "SLACK_API_URL": "http://127.0.0.1:1/api/",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
    "HOST": "127.0.0.1",
    "PORT": "0",
}


async def test_the_start_waits_for_as_long_as_slack_asks():
    clock, troubles = JumpingClock(), [SlackRateLimited(30), SlackUnreachable(), None]

    async def attempt():
        if trouble := troubles.pop(0):
            raise trouble

    await until_it_works("slack", attempt, clock.sleep)
    assert clock.slept == [30, 1.0]


async def test_readiness_is_looked_up_once_for_all_who_ask(sqlite_url, monkeypatch):
    looks = []

    async def look():
        looks.append(True)
        if len(looks) > 1:
            raise DatabaseUnavailable

    async with gatehouse(read_settings({**LEAST, "DATABASE_URL": sqlite_url})) as bot:
        service = Service(bot)
        service._migrated.set()
        monkeypatch.setattr(bot.database, "ping_writing", look)
        said = await asyncio.gather(*(service.missing() for _ in range(100)))
        assert {*said} == {"slack"}
        assert looks == [True]
        # What was true a moment ago is told for a tenth of a second at most.
        async with asyncio.timeout(5):
            while await service.missing() == "slack":  # noqa: ASYNC110 - a cache of its own time
                await asyncio.sleep(0.02)
        assert await service.missing() == "database"


async def test_command_acknowledged_during_shutdown_is_answered(sqlite_url, monkeypatch):
    answered, stopping, cleanup = [], asyncio.Event(), web.AppRunner.cleanup
    async with gatehouse(read_settings({**LEAST, "DATABASE_URL": sqlite_url})) as bot:

        async def answer():
            await asyncio.sleep(0.05)
            answered.append(True)

        async def acknowledge_and_clean_up(runner):
            bot.tasks.start(answer(), "answer")
            await cleanup(runner)

        monkeypatch.setattr(web.AppRunner, "cleanup", acknowledge_and_clean_up)
        stopping.set()
        await Service(bot).run(stopping)
        assert answered == [True]
