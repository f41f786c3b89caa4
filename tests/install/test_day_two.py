"""The second day: upgrade, roll back and restore, with one version and the next.

The next version is the installed one with a migration more. PostgreSQL has the role of the page
and is upgraded process by process; SQLite's file belongs to a user without other rights, who runs
the service and the commands.
"""

import asyncio
import contextlib
import os
import shutil
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

from bot.store.migrations import known_revisions
from sandbox.services.running import running_services
from sandbox.services.state import WELCOME_FLOW
from sandbox.slack.messages import Message
from sandbox.slack.server import running_slack
from tests.conftest import BOTH
from tests.install.page import choice
from tests.support.fleet import Fleet
from tests.support.needs import PYTHON_FOR_ALL, ROOT_USER, lacks
from tests.support.processes import BotProcess
from tests.support.world import environment_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{last}"
branch_labels = depends_on = None


def upgrade():
    op.create_table("day_two", sa.Column("id", sa.Integer, primary_key=True))
"""
# One of those that systemd gives to a service with `DynamicUser`.
SERVICE_USER = 61184


@dataclass(frozen=True)
class Version:
    """A version of the program, started by a user without other rights in a folder of its own."""

    code: tuple[Path, ...]
    folder: Path

    @property
    def command(self) -> list[str]:
        return [_python_of_the_service(), "-m", "bot"]

    def started(self, settings: dict[str, str]) -> dict[str, Any]:
        """Return how its processes are started."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(map(str, self.code)),
            # Whoever starts the program first compiles the libraries for all.
            "PYTHONPYCACHEPREFIX": str(self.code[-1].with_name("compiled")),
        }
        alone = {"user": SERVICE_USER, "group": SERVICE_USER, "extra_groups": []}
        return {"cwd": self.folder, "env": {**environment, **settings}, **alone}

    def run(self, settings: dict[str, str], *words: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [*self.command, *map(str, words)],
            **self.started(settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    async def serving(self, fleet: Fleet) -> "Installed":
        process = Installed(fleet.environment, fleet.session, self)
        fleet.processes.append(process)
        await process.start()
        await process.ready()
        fleet.slack.bot_url = process.address
        return process


def _python_of_the_service() -> str:
    """Return a Python of this version that the user can start: ours may be in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        with contextlib.suppress(OSError):
            user = {"user": SERVICE_USER, "group": SERVICE_USER}
            subprocess.run([python, "--version"], **user, check=True, capture_output=True)
            return python
    return lacks(PYTHON_FOR_ALL)


class Installed(BotProcess):
    """The program of a version, in a folder that is no checkout."""

    def __init__(self, settings, session, version: Version) -> None:
        super().__init__(settings, session)
        self._version = version

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._version.command,
            **self._version.started(self._environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**22,
        )
        self._reading = asyncio.create_task(self._read())


@pytest.fixture(scope="session")
def code(installed, tmp_path_factory) -> Iterator[tuple[Path, Path]]:
    """What is installed, and the next `bot`, where every user can read them."""
    above = tmp_path_factory.getbasetemp().parents
    # On the same disk as pytest's folder, which only we can reach.
    beside = next(folder for folder in above if folder.stat().st_mode & stat.S_IXOTH)
    with tempfile.TemporaryDirectory(prefix="day-two-", dir=beside) as name:
        shared = Path(name)
        shared.chmod(0o755)
        (packages,) = installed.parent.glob("lib/python3*/site-packages")
        for folder, copied in ((packages, "old"), (packages / "bot", "new/bot")):
            shutil.copytree(folder, shared / copied, copy_function=os.link)
        migration = shared / "new/bot/store/migrations/versions/9999_next.py"
        migration.write_text(NEXT.format(last=known_revisions()[-1]), "utf-8")
        (shared / "compiled").mkdir()
        (shared / "compiled").chmod(0o777)
        yield shared / "old", shared / "new"


@pytest.fixture
def state(code) -> Iterator[Path]:
    """The folder that systemd makes for the service; nobody else but root can read it."""
    if os.geteuid():
        lacks(ROOT_USER)
    with tempfile.TemporaryDirectory(dir=code[0].parent) as name:
        folder = Path(name)
        os.chown(folder, SERVICE_USER, SERVICE_USER)
        yield folder


@asynccontextmanager
async def surroundings(url: str) -> AsyncIterator[Fleet]:
    """Slack and the services, and nobody running yet."""
    async with (
        running_services() as services,
        running_slack() as slack,
        aiohttp.ClientSession() as session,
    ):
        settings = environment_for(slack, services, url) | {"INVENTORY_WATCH": "off"}
        fleet = Fleet(slack, services, session, settings)
        try:
            yield fleet
        finally:
            await asyncio.gather(*(process.kill() for process in fleet.processes))


async def ask(fleet: Fleet, identity: str) -> Message:
    """Ask for a test user; return the card."""
    await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {identity}")

    def card() -> Message | None:
        posted = fleet.slack.workspace.messages("C0APPROVALS")
        return next((item for item in posted if identity in item.all_text), None)

    return await fleet.slack.until(card)


async def approve(fleet: Fleet, card: Message) -> None:
    await fleet.slack.click("U0APPROVER", card, "Approve")
    await fleet.slack.until(lambda: "Applied" in card.all_text)


@pytest.mark.parametrize("kind", BOTH)
async def test_second_day(kind, machine, code, state):
    old, new = Version(code[:1], state), Version((code[1], code[0]), state)
    saved = state / "saved"
    async with choice(machine, kind) as chosen:
        url = chosen.get("DATABASE_URL", f"sqlite:///{state}/gatehouse.db")
        async with surroundings(url) as fleet:
            process = await old.serving(fleet)
            await approve(fleet, await ask(fleet, "+15551001"))
            waiting = await ask(fleet, "+15551002")
            status, said = old.run(fleet.environment, "backup", saved)
            assert (status, "audit log is intact" in said) == (0, True), said
            status, said = old.run(fleet.environment, "restore", saved)
            assert (status, "Stop" in said) == (2, True), said

            if kind == "sqlite":
                assert await process.stop() == 0
                process = await new.serving(fleet)
            else:
                process = await roll(fleet, process, old, new)
            await approve(fleet, waiting)
            assert await process.stop() == 0

            status, said = old.run(fleet.environment)
            assert (status, "newer version of Gatehouse" in said) == (2, True), said
            status, said = old.run(fleet.environment, "restore", saved)
            assert (status, "audit log is intact" in said) == (0, True), said
            await old.serving(fleet)
            listed = await fleet.ask("U0APPROVER", "/testusers", "requests")
            assert "+15551002" in listed.all_text
            assert old.run(fleet.environment, "audit", "verify")[0] == 0
    assert {path.stat().st_uid for path in state.iterdir()} == {SERVICE_USER}
    assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}


async def roll(fleet: Fleet, first: Installed, old: Version, new: Version) -> Installed:
    """Start the new version beside two processes of the old one: no click at those is lost."""
    second = await old.serving(fleet)
    cards = [await ask(fleet, f"+155520{number:02}") for number in range(4)]
    upgraded = await new.serving(fleet)
    for number, card in enumerate(cards):
        fleet.slack.bot_url = (first, second)[number % 2].address
        await press_until_it_counts(fleet, card, upgraded.address)
    for process in (first, second):
        async with asyncio.timeout(120):
            # Another process's readiness can only be asked for.
            while await process.readiness() != (503, "schema"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert await process.stop() == 0
    flow = fleet.services.state.flows[WELCOME_FLOW]
    assert {f"+155520{number:02}" for number in range(4)} <= set(flow.identities)
    fleet.slack.bot_url = upgraded.address
    return upgraded


async def press_until_it_counts(fleet: Fleet, card: Message, upgraded: str) -> None:
    """Press `Approve`; whoever is told to press again does so, at the upgraded process."""
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
