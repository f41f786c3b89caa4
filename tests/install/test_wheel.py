"""Test that the command and sandbox in the installed wheel work, and that a request succeeds."""

import asyncio
import os
import re
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from sandbox.bot_process import is_ready
from sandbox.ports import free_port
from sandbox.services.state import WELCOME_FLOW
from tests.support.vendors import running_place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 240


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
        ([], "slack_bot_token = 'xoxp-1'\n", "gatehouse.toml must start with xoxb-"),
        (["check"], "port = 1\n", "SLACK_BOT_TOKEN is required"),
        (["audit", "verify"], "\napprovals_needed = 2x\n", "is not valid TOML"),
        (["policy", "explain", "x", "U0ADA"], "prot = 1\n", "Did you mean port?"),
    ],
)
def test_gatehouse_reads_the_settings_file_of_any_folder(
    installed, tmp_path, words, content, problem
):
    (tmp_path / "gatehouse.toml").write_text(content, encoding="utf-8")
    given = {"PATH": os.environ["PATH"]}
    status, said = run(installed / "gatehouse", *words, cwd=tmp_path, env=given)
    assert status == 2
    assert problem in said


def test_the_installed_packages_fit_together(installed, tmp_path):
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


@asynccontextmanager
async def served(place, start):
    """Start the installed bot with the command that setup printed, and yield the Slack stand-in."""
    port = free_port()
    process = await asyncio.create_subprocess_shell(
        f"exec env {start}",
        cwd=place.folder,
        env={"PATH": os.environ["PATH"], "HOST": "127.0.0.1", "PORT": str(port)},
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
            while not await is_ready(session, f"http://127.0.0.1:{port}"):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        place.slack.bot_url = f"http://127.0.0.1:{port}"
        yield place.slack
    finally:
        process.terminate()
        await process.wait()


async def test_setup_leads_to_a_first_listing_and_a_first_test_user(installed, tmp_path):
    async with running_place(tmp_path, installed / "gatehouse") as place:
        status, said = await place.set_up()
        assert status == 0, said
        start = said.split("Start the bot: ")[1].strip()
        (organization, *_) = place.services.state.data_centers["eu"].organizations
        async with served(place, start) as slack:
            workspace = slack.workspace
            await slack.command("U0OPERATOR", "C0GENERAL", "/orgs", "")
            await slack.until(
                lambda: (
                    organization.organization_id in workspace.ephemerals("U0OPERATOR")[-1].all_text
                )
            )
            asked = "add welcome +15550142 because first"
            await slack.command("U0OPERATOR", "C0GENERAL", "/testusers", asked)
            card = await slack.until(lambda: workspace.messages("C0APPROVALS")[-1])
            await slack.click("U0APPROVER", card, "Approve")
            await slack.until(lambda: "approved by Ada" in card.all_text)
            await slack.until(
                lambda: "+15550142" in place.services.state.flows[WELCOME_FLOW].identities
            )
