"""The second day: upgrade, roll back, restore, and a rolling upgrade, from one checkout.

The old program is the previous commit's, the new one is this commit's with a migration more.
PostgreSQL has the role of the page; SQLite's file belongs to a user without other rights, who
runs the service and the commands.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.store.migrations import known_revisions
from sandbox.services.running import running_services
from sandbox.slack.messages import Message
from sandbox.slack.server import running_slack
from tests.conftest import BOTH
from tests.install.page import choice
from tests.support.fleet import Fleet
from tests.support.needs import PYTHON_FOR_ALL, ROOT_USER, lacks
from tests.support.processes import BotProcess
from tests.support.world import environment_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
WELCOME = "FW00000000000000000000000000000001"
NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{last}"
branch_labels = depends_on = None


def upgrade():
    op.create_table("day_two", sa.Column("id", sa.Integer, primary_key=True))
"""


def run(*command: str | Path, cwd: Path) -> str:
    words = list(map(str, command))
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout


# One of those that systemd gives to a service with `DynamicUser`.
SERVICE_USER = 61184


@dataclass(frozen=True)
class Wheels:
    old: Path
    new: Path
    libraries: Path
    compiled: Path
    python: Path


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Iterator[Path]:
    """A folder that every user can reach, on the same disk as pytest's, which only we can."""
    above = tmp_path_factory.getbasetemp().parents
    beside = next(folder for folder in above if folder.stat().st_mode & stat.S_IXOTH)
    with tempfile.TemporaryDirectory(prefix="day-two-", dir=beside) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def wheels(installed, shared, tmp_path_factory) -> Wheels:
    """Both wheels, built in clean folders as the page says."""
    folder = tmp_path_factory.mktemp("wheels")
    run("git", "clone", "--quiet", ROOT, folder / "checkout", cwd=folder)

    def build(name: str, revision: str) -> Path:
        clean = folder / name
        clean.mkdir()
        archive = f"git archive {revision} | tar --extract --directory {clean}"
        run("bash", "-c", f"set -o pipefail; {archive}", cwd=folder / "checkout")
        if name == "new":
            versions = clean / "bot/store/migrations/versions"
            (versions / "9999_next.py").write_text(NEXT.format(last=known_revisions()[-1]), "utf-8")
        pip = (installed / "python", "-m", "pip", "wheel", "--quiet", "--no-deps")
        run(*pip, "--wheel-dir", folder / f"{name}-wheel", clean, cwd=folder)
        (wheel,) = (folder / f"{name}-wheel").glob("*.whl")
        return wheel

    with ThreadPoolExecutor() as builders:
        old, new = builders.map(build, ("old", "new"), ("HEAD~1", "HEAD"))
    said = run(installed / "python", "-c", "import aiohttp; print(aiohttp.__file__)", cwd=folder)
    ours = shutil.ignore_patterns("bot", "handlers", "sandbox", "gatehouse*", "__pycache__")
    libraries = shared / "libraries"
    packages = Path(said.strip()).parents[1]
    shutil.copytree(packages, libraries, ignore=ours, copy_function=os.link)
    # Whoever starts the program first compiles the libraries for all.
    compiled = shared / "compiled"
    compiled.mkdir()
    compiled.chmod(0o777)
    return Wheels(old, new, libraries, compiled, installed / "python")


@pytest.fixture
def folder(shared) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=shared) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def python_for(user: int | None) -> str:
    """Return a Python of this version that the user can start: ours may be in root's home."""
    if user is None:
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        with contextlib.suppress(OSError):
            subprocess.run([python, "--version"], user=user, group=user, check=True)
            return python
    return lacks(PYTHON_FOR_ALL)


class Environment:
    """An environment of its own, with the libraries of the installation beside the program."""

    def __init__(self, folder: Path, wheels: Wheels, user: int | None = None) -> None:
        self._folder = folder
        self.user = user
        run(python_for(user), "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        (self._packages,) = folder.glob("lib/python*/site-packages")
        (self._packages / "libraries.pth").write_text(f"{wheels.libraries}\n", "utf-8")
        self._pip = (wheels.python, "-m", "pip", "--python", folder / "bin/python")
        self._compiled = wheels.compiled

    def install(self, wheel: Path) -> None:
        again = ("--quiet", "--no-deps", "--force-reinstall")
        run(*self._pip, "install", *again, wheel, cwd=self._folder)

    def started(self, settings: dict[str, str]) -> dict[str, Any]:
        """Return how its processes are started."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "PYTHONPYCACHEPREFIX": str(self._compiled),
        }
        alone: dict[str, Any] = {}
        if self.user is not None:
            alone = {"user": self.user, "group": self.user, "extra_groups": []}
        return {"cwd": self._folder, "env": {**environment, **settings}, **alone}

    @property
    def program(self) -> Path:
        return self._folder / "bin/gatehouse"

    def modules(self) -> set[str]:
        found = {
            path for name in ("bot", "handlers") for path in (self._packages / name).rglob("*")
        }
        return {str(path) for path in found if "__pycache__" not in path.parts}

    def run(self, settings: dict[str, str], *words: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [self.program, *map(str, words)],
            **self.started(settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    def process(self, fleet: Fleet) -> "Installed":
        process = Installed(fleet.environment, fleet.session, self)
        fleet.processes.append(process)
        return process


class Installed(BotProcess):
    """`gatehouse` of an environment, in a folder that is no checkout."""

    def __init__(self, settings, session, environment: Environment) -> None:
        super().__init__(settings, session)
        self._installed = environment

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            self._installed.program,
            **self._installed.started(self._environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**22,
        )
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        assert await self.ended() == 0


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


async def serving(environment: Environment, fleet: Fleet) -> Installed:
    process = environment.process(fleet)
    await process.start()
    await process.ready()
    fleet.slack.bot_url = process.address
    return process


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


def state_of_service(folder: Path) -> Path:
    """Make the folder that systemd makes for the service; nobody else but root can read it."""
    if os.geteuid():
        lacks(ROOT_USER)
    state = folder / "state"
    state.mkdir(mode=0o700)
    os.chown(state, SERVICE_USER, SERVICE_USER)
    return state


@pytest.mark.parametrize("kind", BOTH)
async def test_second_day(kind, machine, wheels, folder):
    state = state_of_service(folder)
    environment = Environment(folder / "program", wheels, SERVICE_USER)
    saved = state / "saved"
    environment.install(wheels.old)
    modules = environment.modules()
    async with choice(machine, kind) as chosen:
        url = chosen.get("DATABASE_URL", f"sqlite:///{state}/gatehouse.db")
        await live_two_days(environment, wheels, url, saved)
    assert {path.stat().st_uid for path in state.iterdir()} == {SERVICE_USER}
    assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}
    assert environment.modules() == modules


async def live_two_days(environment: Environment, wheels: Wheels, url: str, saved: Path) -> None:
    async with surroundings(url) as fleet:
        process = await serving(environment, fleet)
        await approve(fleet, await ask(fleet, "+15551001"))
        waiting = await ask(fleet, "+15551002")
        status, said = environment.run(fleet.environment, "backup", saved)
        assert (status, "audit log is intact" in said) == (0, True), said
        status, said = environment.run(fleet.environment, "restore", saved)
        assert (status, "Stop" in said) == (2, True), said
        await process.stop()

        environment.install(wheels.new)
        process = await serving(environment, fleet)
        await approve(fleet, waiting)
        await process.stop()
        assert environment.run(fleet.environment, "audit", "verify")[0] == 0

        environment.install(wheels.old)
        status, said = environment.run(fleet.environment)
        assert (status, "newer version of Gatehouse" in said) == (2, True), said
        status, said = environment.run(fleet.environment, "restore", saved)
        assert (status, "audit log is intact" in said) == (0, True), said
        await serving(environment, fleet)
        listed = await fleet.ask("U0APPROVER", "/testusers", "requests")
        assert "+15551002" in listed.all_text
        assert environment.run(fleet.environment, "audit", "verify")[0] == 0


@pytest.mark.postgres
async def test_no_click_is_lost_in_a_rolling_upgrade(empty_postgres_url, wheels, folder):
    old, new = (Environment(folder / name, wheels) for name in ("old", "new"))
    old.install(wheels.old)
    new.install(wheels.new)
    async with surroundings(empty_postgres_url) as fleet:
        first, second = [await serving(old, fleet) for _ in range(2)]
        cards = [await ask(fleet, f"+155520{number:02}") for number in range(6)]
        upgraded = await serving(new, fleet)
        for number, card in enumerate(cards):
            fleet.slack.bot_url = (first, second)[number % 2].address
            await press_until_it_counts(fleet, card, upgraded.address)
        for process in (first, second):
            async with asyncio.timeout(120):
                # Another process's readiness can only be asked for.
                while await process.readiness() != (503, "schema"):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        flow = fleet.services.state.flows[WELCOME]
        assert {f"+155520{number:02}" for number in range(6)} <= set(flow.identities)


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
