"""`python -m sandbox`: one command opens everything, and closes it."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from sandbox.__main__ import main
from sandbox.bot_process import ROOT
from sandbox.launch import running_sandbox
from sandbox.patience import PATIENCE_SECONDS

READY_SECONDS = PATIENCE_SECONDS

pytestmark = pytest.mark.slow


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("arguments", [["--port", "99999"], ["services", "--port", "99999"]])
def test_port_that_is_none_is_said_in_a_sentence(arguments, capsys) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "'99999' is not a port: choose 1 to 65535" in capsys.readouterr().err


@asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sandbox",
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists children in /proc")
async def test_one_command_prints_one_address_and_stops_all_of_it() -> None:
    async with command("--port", "0") as process:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), READY_SECONDS)
        found = re.fullmatch(rb"Gatehouse is at (http://127\.0\.0\.1:\d+) .*\n", line)
        assert found, line
        async with (
            aiohttp.ClientSession(found.group(1).decode()) as session,
            session.get("/page/state?as=U0VIEWER") as answer,
        ):
            assert (await answer.json())["bot"] == "ready"
        [bot] = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        said, complaints = await asyncio.wait_for(process.communicate(), READY_SECONDS)
        assert (process.returncode, said, complaints) == (0, b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(bot, 0)


async def test_a_taken_port_is_said_in_a_sentence() -> None:
    async with running_sandbox() as sandbox:
        port = sandbox.url.rsplit(":", 1)[1]
        async with command("--port", port) as process:
            _, complaints = await asyncio.wait_for(process.communicate(), READY_SECONDS)
    assert process.returncode == 1
    assert f"cannot listen on port {port}".encode() in complaints
    assert b"Traceback" not in complaints


async def test_a_bot_that_cannot_start_ends_the_sandbox_with_its_words() -> None:
    async with command("--port", "0", "--set", "APPROVALS_NEEDED=none") as process:
        _, complaints = await asyncio.wait_for(process.communicate(), READY_SECONDS)
    assert process.returncode == 1
    assert b"APPROVALS_NEEDED" in complaints


async def test_a_bot_that_dies_is_said_and_can_be_started_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running_sandbox() as sandbox:
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        assert sandbox.bot.pid is not None
        os.kill(sandbox.bot.pid, signal.SIGKILL)
        await sandbox.slack.until(lambda: sandbox.bot.state == "stopped")
        assert "The bot has stopped (exit -9)" in capsys.readouterr().err
        await asyncio.wait_for(sandbox.bot.start(), READY_SECONDS)
        delivery = await sandbox.slack.command("U0VIEWER", "C0GENERAL", "/gatehouse", "whoami")
        assert (delivery.status, delivery.error) == (200, None)
