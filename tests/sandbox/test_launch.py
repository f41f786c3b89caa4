"""`python -m sandbox` runs everything, and `python -m sandbox services` runs only the services."""

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from sandbox.__main__ import main
from sandbox.bot_process import ROOT
from sandbox.ports import free_port
from sandbox.services.running import told_to_stop

pytestmark = pytest.mark.slow


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("arguments", [["--port", "99999"], ["services", "--port", "99999"]])
def test_port_that_is_none_is_said_in_a_sentence(arguments, capsys) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "'99999' is not a port: choose 1 to 65535" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists children in /proc")
async def test_one_command_starts_and_stops_the_whole_sandbox() -> None:
    # `tests/install` starts it without `--host`.
    words = (sys.executable, "-m", "sandbox", "--host", "0.0.0.0", "--port", "0")
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, **pipes)
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        found = re.fullmatch(rb"Gatehouse is at (http://127\.0\.0\.1:\d+) .*\n", line)
        assert found, line
        async with (
            aiohttp.ClientSession(found.group(1).decode()) as session,
            session.get("/page/state?as=U0VIEWER") as answer,
        ):
            assert (await answer.json())["bot"] == "ready"
        [bot] = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        said, complaints = await process.communicate()
        assert (process.returncode, said, complaints) == (0, b"", b"")
    finally:
        if process.returncode is None:
            process.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(bot, 0)


@pytest.mark.parametrize("words", [[], ["services"]])
def test_a_taken_port_is_said_in_a_sentence(words, capsys) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main([*words, "--port", str(port)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"cannot listen on port {port}" in said


def test_a_bot_that_cannot_start_ends_the_sandbox_with_its_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--port", "0", "--set", "APPROVALS_NEEDED=none"]) == 1
    assert "APPROVALS_NEEDED" in capsys.readouterr().err


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


async def test_the_services_print_their_address_and_stop_on_ctrl_c():
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
async def test_the_bot_outlives_its_terminal_under_nohup(set_before):
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
