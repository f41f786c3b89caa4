"""`python -m sandbox services`: as a person starts it."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp

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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


async def test_a_taken_port_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await start(taken.getsockname()[1])
        _, errors = await process.communicate()

    assert process.returncode == 1
    assert len(errors.decode().splitlines()) == 1
