"""The bot starts and stops cleanly, and slow host name lookups don't delay other work."""

import asyncio
import socket
import threading
import time

import pytest
from aiohttp import web

from bot.__main__ import main
from bot.app import gatehouse
from bot.errors import DatabaseUnavailable, SlackRateLimited, SlackUnreachable
from bot.ops.loop import NamingLoop, run
from bot.serve import Service, until_it_works
from tests.support.clock import JumpingClock
from tests.support.settings import LEAST, read_settings

SETTINGS = {**LEAST, "SLACK_API_URL": "http://127.0.0.1:1/api/", "HOST": "127.0.0.1", "PORT": "0"}


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

    async with gatehouse(read_settings({**SETTINGS, "DATABASE_URL": sqlite_url})) as bot:
        service = Service(bot)
        service._migrated.set()
        monkeypatch.setattr(bot.database, "ping_writing", look)
        said = await asyncio.gather(*(service.missing() for _ in range(100)))
        assert {*said} == {"slack"}
        assert looks == [True]
        # A `/readyz` response is cached for at most a second.
        async with asyncio.timeout(5):
            while await service.missing() == "slack":  # noqa: ASYNC110 - the cache just expires
                await asyncio.sleep(0.02)
        assert await service.missing() == "database"


async def test_command_acknowledged_during_shutdown_is_answered(sqlite_url, monkeypatch):
    answered, stopping, cleanup = [], asyncio.Event(), web.AppRunner.cleanup
    async with gatehouse(read_settings({**SETTINGS, "DATABASE_URL": sqlite_url})) as bot:

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


SLOW, QUICK = "slow.example", "quick.example"
FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443))]


@pytest.fixture
def asked(monkeypatch):
    """Yield the list of host names that were looked up.

    The lookup of the slow host name doesn't finish until the test ends.
    """
    asked, over = [], threading.Event()

    def look_up(host, *_, **_hints):
        asked.append(host)
        if host.endswith(SLOW):
            over.wait(30)
        if host == "nobody.example":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return FOUND

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked
    over.set()


async def look(host):
    return await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)


def test_stop_waits_for_no_name(asked):
    async def program():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await look(SLOW)

    began = time.monotonic()
    run(program())
    assert time.monotonic() - began < 20


def test_slow_names_hold_up_neither_names_nor_work_in_threads(asked):
    slow_hosts = [f"{number}.{SLOW}" for number in range(50)]

    async def program():
        slow = [asyncio.create_task(look(host)) for host in slow_hosts]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(20):
            assert await look(QUICK) == FOUND
            assert await asyncio.to_thread(lambda: 7) == 7
        for task in slow:
            task.cancel()
        assert isinstance(asyncio.get_running_loop(), NamingLoop)

    run(program())
    assert sorted(asked) == sorted([*slow_hosts, QUICK])


@pytest.mark.parametrize("host", ["a..example", ".example", f"{'a' * 64}.example"])
def test_a_name_that_no_host_can_have_is_a_name_that_cannot_be_found(host):
    async def program():
        with pytest.raises(socket.gaierror):
            await look(host)

    run(program())


def test_the_program_runs_in_a_naming_loop(monkeypatch):
    loops = []

    async def serve(_settings, _redactor):
        loops.append(asyncio.get_running_loop())

    monkeypatch.setattr("bot.serve.serve", serve)
    monkeypatch.setattr("bot.ops.logs.configure_logs", lambda *_: None)
    monkeypatch.setattr("os.environ", LEAST)
    assert main(["serve"]) == 0
    assert isinstance(loops[0], NamingLoop)
