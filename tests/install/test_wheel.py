"""The wheel in an empty environment, outside of the checkout: the command, and the sandbox."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import aiohttp
import pytest

from sandbox.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "content", "problem"),
    [
        ([], "SLACK_BOT_TOKEN=xoxp-1\n", "SLACK_BOT_TOKEN must start with xoxb-"),
        (["check"], "PORT=1\n", "SLACK_BOT_TOKEN is required"),
        (
            ["audit", "verify"],
            "\nAPPROVALS_NEEDED='2'x\n",
            "line 2: can't be read; write NAME='value' on one line",
        ),
    ],
)
def test_gatehouse_reads_the_env_file_from_any_folder(installed, tmp_path, words, content, problem):
    file = tmp_path / "gatehouse.env"
    file.write_text(content, encoding="utf-8")
    given = {"PATH": os.environ["PATH"], "GATEHOUSE_ENV_FILE": str(file)}
    status, said = run(installed / "gatehouse", *words, cwd=tmp_path, env=given)
    assert status == 2
    assert problem in said


def test_what_is_installed_fits_together(installed, tmp_path):
    status, said = run(installed / "python", "-m", "pip", "check", cwd=tmp_path)
    assert status == 0, said


async def test_sandbox_of_the_wheel_starts_its_bot_and_serves_its_page(installed, tmp_path):
    process = await asyncio.create_subprocess_exec(
        installed / "gatehouse",
        *("sandbox", "--port", str(free_port())),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = (await process.stdout.readline()).decode()
        async with aiohttp.ClientSession(re.findall(r"http://[^ ]+", line)[0]) as session:
            for file in (ROOT / "sandbox/page").iterdir():
                async with session.get(f"/page/files/{file.name}") as answer:
                    assert answer.status == 200
            async with session.get("/page/state?as=U0VIEWER") as answer:
                assert (await answer.json())["bot"] == "ready"
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() in {0, -15}


def test_version_is_written_in_one_place():
    assert "version" not in re.findall(
        r"(?m)^(\w+) = \"", (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool")[0]
    )
