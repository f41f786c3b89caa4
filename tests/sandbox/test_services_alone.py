"""`python -m sandbox services`: as a person starts it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from sandbox.ports import free_port
from sandbox.services.running import told_to_stop

ROOT = Path(__file__).parents[2]


async def start(port):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sandbox",
        "services",
        "--port",
        str(port),
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_it_says_where_it_answers_and_stops_on_ctrl_c():
    port = free_port()
    process = await start(port)
    line = (await process.stdout.readline()).decode()
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
        http.get("/sa/inventory/v1/organizations", params={"authtoken": "demo-sa"}) as response,
    ):
        assert response.status == 200

    process.send_signal(signal.SIGINT)
    _, errors = await process.communicate()

    assert f"http://127.0.0.1:{port}" in line
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.parametrize("set_before", [signal.SIG_IGN, signal.SIG_DFL])
async def test_what_nohup_started_outlives_its_terminal(set_before):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGHUP, set_before)
    try:
        told_to_stop()
        is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, handler)
    assert is_ignored is (set_before is signal.SIG_IGN)
