"""`python -m sandbox`: one command opens everything, and closes it."""

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

pytestmark = pytest.mark.slow


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("arguments", [["--port", "99999"], ["services", "--port", "99999"]])
def test_port_that_is_none_is_said_in_a_sentence(arguments, capsys) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "'99999' is not a port: choose 1 to 65535" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists children in /proc")
async def test_one_command_prints_one_address_and_stops_all_of_it() -> None:
    words = (sys.executable, "-m", "sandbox", "--port", "0")
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
