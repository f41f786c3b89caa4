"""Test that a bot installed with the commands in docs/install.md becomes ready."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from bot import __version__
from bot.settings.files import toml_text
from sandbox.bot_process import is_ready
from sandbox.people import ROLES
from sandbox.ports import free_port
from sandbox.services.running import running_services
from sandbox.slack.server import SIGNING_SECRET, RunningSlack, running_slack
from tests.conftest import BOTH
from tests.install.page import LISTENS, ROOT, Machine, blocks, choice, settings_of
from tests.support.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

START_SECONDS, STOP_SECONDS = 240, 15


@pytest.fixture
async def slack() -> AsyncIterator[RunningSlack]:
    async with running_slack() as slack:
        yield slack


def test_first_step_ends_in_the_version(first_step):
    said = (first_step / "said").read_text(encoding="utf-8")
    assert said.splitlines()[-1] == f"gatehouse {__version__}"


def test_first_step_installs_nothing_for_development(installed):
    packages = {path.name for path in installed.parent.glob("lib/python3*/site-packages/*")}
    assert "aiohttp" in packages
    assert not packages & {"playwright", "mypy", "pytest", "ruff", "uv"}


def test_upgrade_installs_the_libraries_too():
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    (count,) = re.findall(r"run the last (\w+) commands of \[step 1\]", page)
    [first] = blocks("1")
    last = first.text.splitlines()[-{"three": 3, "four": 4}[count] :]
    assert sum(" pip install " in line for line in last) == 2


def test_links_of_the_page_create_the_app(machine):
    links = [urlsplit(machine.follow(block)) for block in blocks("3")]
    by_http, by_socket = (json.loads(parse_qs(link.query)["manifest_json"][0]) for link in links)
    assert by_http["settings"]["socket_mode_enabled"] is False
    assert by_socket["settings"]["socket_mode_enabled"] is True


@pytest.mark.parametrize("kind", BOTH)
async def test_page_leads_to_a_bot_that_is_ready(machine, slack, kind):
    needs("curl")
    async with choice(machine, kind) as chosen, running_services() as services:
        filled = {**chosen, **required(slack), **services.bot_settings()}
        # All settings that the page names are filled in, and no other settings.
        told = {name.upper() for settings in settings_of("5") for name in settings}
        assert set(filled) - set(chosen) | {"INVENTORY_BASE_URL"} == told
        port = free_port()
        around = {"SLACK_API_URL": slack.api_url, "PORT": str(port)}
        machine.filled[LISTENS] = f"127.0.0.1:{port}"
        machine.edited.write_text(edited(filled), encoding="utf-8")
        for block in blocks("5"):
            machine.follow(block)
        [check] = blocks("6")
        said = await asyncio.to_thread(machine.follow, check, around)
        assert said.endswith("All is well.\n")
        assert "WARN" not in said
        assert ("PostgreSQL" in said) is (kind == "postgres")
        start, is_ready = blocks("7")
        machine.follow(start)
        assert machine.systemctl_log.read_text().split("\n")[:2] == [
            "daemon-reload",
            "enable --now gatehouse",
        ]
        async with running(installed_service(machine), around):
            await until_ready(port)
            assert await asyncio.to_thread(machine.follow, is_ready) == "ready"
            slack.bot_url = f"http://127.0.0.1:{port}"
            told = await slack.command("U0ADMIN", "C0GENERAL", "/gatehouse", "whoami")
            assert told.error is None
            await slack.until(lambda: "admin" in slack.workspace.ephemerals("U0ADMIN")[-1].all_text)


def required(slack: RunningSlack) -> dict[str, str]:
    """For each `…` on the page, return a value that the stand-in services accept."""
    return {
        "SLACK_BOT_TOKEN": slack.workspace.bot_token,
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "ALERTS_CHANNEL": "C0ALERTS",
        "APPROVALS_CHANNEL": "C0APPROVALS",
        "HOST": "127.0.0.1",
        "ROLES": json.dumps(
            {"viewer": ["*"], **{k: ROLES[k] for k in ("operator", "approver", "admin")}}
        ),
    }


def edited(settings: dict[str, str]) -> str:
    """Convert settings to TOML. Fail if a setting is missing from `gatehouse.example.toml`."""
    example = (ROOT / "gatehouse.example.toml").read_text(encoding="utf-8")
    for name in settings:
        assert re.search(rf"(?m)^#?\[?{name.lower()}\b", example), name
    tables = {
        name.lower(): json.loads(value) if value.startswith("{") else value
        for name, value in settings.items()
    }
    return toml_text(tables)


@dataclass(frozen=True)
class Service:
    """The parts of a systemd unit that a test needs to run the bot."""

    command: list[str]
    folder: Path
    environment: dict[str, str]


def installed_service(machine: Machine) -> Service:
    """Read the installed systemd unit, and return the service that it defines."""
    unit = Path(machine.fill("/etc/systemd/system/gatehouse.service")).read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^(\w+)=(.*)$", machine.fill(unit))
    one = dict(lines)
    folder = Path(one["WorkingDirectory"])
    given = dict(value.split("=", 1) for name, value in lines if name == "Environment")
    name, _, source = one["LoadCredential"].partition(":")
    credential = machine.folder / "run/credentials/gatehouse.service" / name
    assert given["GATEHOUSE_CONFIG"] == f"/{credential.relative_to(machine.folder)}"
    credential.parent.mkdir(parents=True)
    shutil.copy(source, credential)
    credential.chmod(0o400)
    environment = {**given, "GATEHOUSE_CONFIG": str(credential)}
    return Service(one["ExecStart"].split(), folder, environment)


async def until_ready(port: int) -> None:
    """Wait until the bot is ready. Allow extra time because other tests may be using the CPU."""
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
        # There is no notice of readiness from another process, so this polls.
        while not await is_ready(session, f"http://127.0.0.1:{port}"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running(service: Service, around: dict[str, str]) -> AsyncIterator[None]:
    """Start the service as systemd would, and stop it with SIGTERM when the `with` block ends."""
    process = await asyncio.create_subprocess_exec(
        *service.command,
        cwd=service.folder,
        env={**service.environment, **around},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            assert await process.wait() == 0
