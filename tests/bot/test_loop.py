"""Looking a name up holds up nothing else, and nobody's stop."""

import asyncio
import socket
import threading
import time

import pytest

from bot.__main__ import main
from bot.ops.loop import NamingLoop, run
from tests.bot.test_settings import LEAST

SLOW, QUICK = "slow.example", "quick.example"
FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443))]


@pytest.fixture
def asked(monkeypatch):
    """The names that were looked up; the slow one takes until the test ends."""
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


def test_program_runs_in_it(monkeypatch):
    loops = []

    async def serve(_settings, _redactor):
        loops.append(asyncio.get_running_loop())

    monkeypatch.setattr("bot.__main__.serve", serve)
    monkeypatch.setattr("bot.__main__.configure_logs", lambda *_: None)
    monkeypatch.setattr("os.environ", LEAST)
    assert main(["serve"]) == 0
    assert isinstance(loops[0], NamingLoop)
