"""Test upgrading an installed bot, rolling back, and restoring a backup.

The old version is the installed program, and the new version adds a migration. On PostgreSQL, the
tests use the role from docs/install.md and perform a rolling upgrade. On SQLite, an unprivileged
user owns the database file and runs the service and all commands.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.migrations import known_revisions
from sandbox.services.running import running_services
from sandbox.slack.messages import Message
from sandbox.slack.server import running_slack
from tests.install.page import choice, postgres_environment
from tests.support import backup_steps
from tests.support.fleet import Fleet
from tests.support.needs import PYTHON_FOR_ALL, ROOT_USER, lacks
from tests.support.postgres import server_url
from tests.support.processes import BotProcess
from tests.support.world import environment_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WELCOME = "FW00000000000000000000000000000001"
NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{last}"
branch_labels = depends_on = None


def upgrade():
    op.create_table("day_two", sa.Column("id", sa.Integer, primary_key=True))
"""


# A user id that systemd gives to services with `DynamicUser`.
SERVICE_USER = 61184


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Iterator[Path]:
    """Yield a folder that is open to all users and on the same disk as pytest's folder."""
    above = tmp_path_factory.getbasetemp().parents
    beside = next(folder for folder in above if folder.stat().st_mode & stat.S_IXOTH)
    with tempfile.TemporaryDirectory(prefix="day-two-", dir=beside) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def versions(installed, shared) -> tuple[list[Path], list[Path]]:
    """Return the import paths of the old and new versions of the program."""
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    old, new = shared / "old", shared / "new"
    # The compiled modules are linked too; other tests may be writing more of them.
    unfinished = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(packages, old, ignore=unfinished, copy_function=os.link)
    shutil.copytree(old / "bot", new / "bot")
    migration = new / "bot/migrations/versions/9999_next.py"
    migration.write_text(NEXT.format(last=known_revisions()[-1]), "utf-8")
    return [old], [new, old]


@pytest.fixture
def folder(shared) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=shared) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def python_for(user: int | None) -> str:
    """Return the path of a Python interpreter that the user can run.

    The interpreter that runs the tests may be in root's home folder.
    """
    if user is None:
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        with contextlib.suppress(OSError):
            subprocess.run([python, "--version"], user=user, group=user, check=True)
            return python
    return lacks(PYTHON_FOR_ALL)


@dataclass(frozen=True)
class Program:
    """A version of the program, the folder in which it runs, and the user who runs it."""

    paths: list[Path]
    folder: Path
    user: int | None = None

    def command(self, *words: str | Path) -> list[str]:
        return [python_for(self.user), "-m", "bot", *map(str, words)]

    def started(self, settings: dict[str, str]) -> dict[str, Any]:
        """Return `subprocess` options for running this version of the program."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(map(str, self.paths)),
        }
        alone: dict[str, Any] = {}
        if self.user is not None:
            alone = {"user": self.user, "group": self.user, "extra_groups": []}
        return {"cwd": self.folder, "env": {**environment, **settings}, **alone}

    def run(self, settings: dict[str, str], *words: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            self.command(*words),
            **self.started(settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr


class Installed(BotProcess):
    """Runs one version of the program outside a checkout."""

    def __init__(self, fleet: Fleet, program: Program) -> None:
        super().__init__(fleet.environment, fleet.session)
        self._program = program

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._program.command(),
            **self._program.started(self._environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**22,
        )
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        assert await self.ended() == 0


@asynccontextmanager
async def surroundings(database_url: str) -> AsyncIterator[Fleet]:
    """Run the stand-ins for Slack and the services, without a bot."""
    async with (
        running_services() as services,
        running_slack() as slack,
        aiohttp.ClientSession() as session,
    ):
        settings = environment_for(slack, services, database_url) | {"INVENTORY_WATCH": "off"}
        fleet = Fleet(slack, services, session, settings)
        try:
            yield fleet
        finally:
            await asyncio.gather(*(process.kill() for process in fleet.processes))


async def serving(program: Program, fleet: Fleet) -> Installed:
    process = Installed(fleet, program)
    fleet.processes.append(process)
    await process.start()
    await process.ready()
    fleet.slack.bot_url = process.address
    return process


async def ask(fleet: Fleet, identity: str) -> Message:
    """Send a request to add a test user, and return the request's card."""
    await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {identity}")

    def card() -> Message | None:
        posted = fleet.slack.workspace.messages("C0APPROVALS")
        return next((item for item in posted if identity in item.all_text), None)

    return await fleet.slack.until(card)


async def approve(fleet: Fleet, card: Message) -> None:
    await fleet.slack.click("U0APPROVER", card, "Approve")
    await fleet.slack.until(lambda: "Applied" in card.all_text)


def state_of_service(folder: Path) -> Path:
    """Create the service's state folder just as systemd would.

    Only root and the service's user can read this folder.
    """
    if os.geteuid():
        lacks(ROOT_USER)
    state = folder / "state"
    state.mkdir(mode=0o700)
    os.chown(state, SERVICE_USER, SERVICE_USER)
    return state


async def test_second_day_on_sqlite(versions, folder):
    state = state_of_service(folder)
    old, new = (Program(paths, folder, SERVICE_USER) for paths in versions)
    async with surroundings(f"sqlite:///{state}/gatehouse.db") as fleet:
        process = await serving(old, fleet)
        await approve(fleet, await ask(fleet, "+15551001"))
        waiting = await ask(fleet, "+15551002")
        status, said = old.run(fleet.environment, "backup", state / "backup.db")
        assert status == 0, said
        await process.stop()
        process = await serving(new, fleet)
        await approve(fleet, waiting)
        await process.stop()
        assert new.run(fleet.environment, "audit", "verify")[0] == 0
        status, said = old.run(fleet.environment)
        assert (status, "newer version of Gatehouse" in said) == (2, True), said
        backup_steps.run(backup_steps.commands("SQLite")[1], state, fleet.environment)
        await go_back(old, fleet, "+15551002")
    files = [path.stat() for path in state.iterdir() if path.is_file()]
    assert {file.st_uid for file in files} == {SERVICE_USER}
    assert {file.st_mode & 0o777 for file in files} == {0o600}


async def go_back(old: Program, fleet: Fleet, waiting: str) -> None:
    """Check that the old program finds a pending request in the restored database."""
    await serving(old, fleet)
    listed = await fleet.ask("U0APPROVER", "/testusers", "requests")
    assert waiting in listed.all_text


@pytest.mark.postgres
async def test_no_click_is_lost_in_a_rolling_upgrade_on_postgresql(machine, versions, folder):
    old, new = (Program(paths, folder) for paths in versions)
    identities = [f"+155520{number:02}" for number in range(6)]
    async with choice(machine, "postgres") as chosen, surroundings(chosen["DATABASE_URL"]) as fleet:
        first, second = [await serving(old, fleet) for _ in range(2)]
        cards = [await ask(fleet, identity) for identity in identities]
        settings = {**fleet.environment, **postgres_environment(server_url())}
        backup_steps.run(backup_steps.commands("PostgreSQL")[0], folder, settings)
        upgraded = await serving(new, fleet)
        for number, card in enumerate(cards):
            fleet.slack.bot_url = (first, second)[number % 2].address
            await press_until_it_counts(fleet, card, upgraded.address)
        for process in (first, second):
            async with asyncio.timeout(120):
                # There is no notice of readiness from another process, so this polls.
                while await process.readiness() != (503, "schema"):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        assert set(identities) <= set(fleet.services.state.flows[WELCOME].identities)
        for process in (first, second, upgraded):
            await process.stop()
        name = chosen["DATABASE_URL"].rpartition("/")[2]
        backup_steps.run(backup_steps.restore_of(name), folder, settings)
        await go_back(old, fleet, identities[0])


async def press_until_it_counts(fleet: Fleet, card: Message, upgraded: str) -> None:
    """Press `Approve`.

    If the reply asks for a second click, send that click to the upgraded process.
    """
    told = len(fleet.seen_by("U0APPROVER"))
    await fleet.slack.click("U0APPROVER", card, "Approve")

    def answer() -> str:
        if "Applied" in card.all_text:
            return "applied"
        new = [item.all_text for item in fleet.seen_by("U0APPROVER")[told:]]
        return "again" if any("again" in item for item in new) else ""

    if await fleet.slack.until(answer, timeout=30) == "again":
        fleet.slack.bot_url = upgraded
        await approve(fleet, card)
