"""The wheel in an empty environment, outside of the checkout: the command, and an approval."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import expect

from bot import __version__
from sandbox.ports import free_port
from tests.browser.person import chromium, person_at
from tests.support.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]

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


def test_gatehouse_says_its_version_from_any_folder(installed, tmp_path):
    status, said = run(installed / "gatehouse", "--version", cwd=tmp_path)
    assert (status, said.strip()) == (0, f"gatehouse {__version__}")


def test_gatehouse_check_names_what_is_missing(installed, tmp_path):
    bare = {"PATH": os.environ["PATH"]}
    status, said = run(installed / "gatehouse", "check", cwd=tmp_path, env=bare)
    assert status == 2
    assert "SLACK_BOT_TOKEN is required" in said


def test_gatehouse_reads_the_env_file(installed, tmp_path):
    file = tmp_path / "gatehouse.env"
    given = {"PATH": os.environ["PATH"], "GATEHOUSE_ENV_FILE": str(file)}
    for content, problem in {
        "SLACK_BOT_TOKEN=xoxp-1\n": "SLACK_BOT_TOKEN must start with xoxb-",
        "\nAPPROVALS_NEEDED='2'x\n": "line 2: can't be read; write NAME='value' on one line",
    }.items():
        file.write_text(content, encoding="utf-8")
        for command in ([], ["check"], ["audit", "verify"]):
            status, said = run(installed / "gatehouse", *command, cwd=tmp_path, env=given)
            assert status == 2
            assert problem in said


def test_what_is_installed_fits_together(installed, tmp_path):
    status, said = run(installed / "python", "-m", "pip", "check", cwd=tmp_path)
    assert status == 0, said


async def test_sandbox_of_the_wheel_comes_to_an_approval(installed, tmp_path):
    needs("chromium")
    process = await asyncio.create_subprocess_exec(
        installed / "gatehouse",
        *("sandbox", "--port", str(free_port())),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = (await process.stdout.readline()).decode()
        url = re.findall(r"http://\S+", line)[0]
        async with chromium() as browser, person_at(browser, url) as someone:
            await someone.act_as("Otto")
            await someone.type("/testusers add survey wheel@example.com because the wheel")
            await expect(someone.newest).to_contain_text("Sent to #approvals")
            await someone.act_as("Ada")
            await someone.go_to("#approvals")
            await someone.button("Approve").click()
            await expect(someone.log).to_contain_text("approved by Ada Approver")
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() in {0, -15}


def test_version_is_written_in_one_place():
    assert "version" not in re.findall(
        r"(?m)^(\w+) = \"", (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool")[0]
    )
