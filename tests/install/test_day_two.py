"""The second day: upgrade, roll back, restore, and a rolling upgrade, from one checkout.

The old program is the previous commit's, the new one is this commit's with a migration more.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from bot.store.migrations import known_revisions
from sandbox.services.running import running_services
from sandbox.slack.messages import Message
from sandbox.slack.server import running_slack
from tests.support.fleet import Fleet
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


@dataclass(frozen=True)
class Wheels:
    old: Path
    new: Path
    libraries: Path


@pytest.fixture(scope="session")
def wheels(installed, tmp_path_factory) -> Wheels:
    """Both wheels, built in clean folders as the page says."""
    folder = tmp_path_factory.mktemp("wheels")
    run("git", "clone", "--quiet", ROOT, folder / "checkout", cwd=folder)
    made = {}
    for name, revision in (("old", "HEAD~1"), ("new", "HEAD")):
        clean = folder / name
        clean.mkdir()
        archive = f"git archive {revision} | tar --extract --directory {clean}"
        run("bash", "-c", f"set -o pipefail; {archive}", cwd=folder / "checkout")
        if name == "new":
            versions = clean / "bot/store/migrations/versions"
            (versions / "9999_next.py").write_text(NEXT.format(last=known_revisions()[-1]), "utf-8")
        pip = (installed / "python", "-m", "pip", "wheel", "--quiet", "--no-deps")
        run(*pip, "--wheel-dir", folder / f"{name}-wheel", clean, cwd=folder)
        (made[name],) = (folder / f"{name}-wheel").glob("*.whl")
    said = run(installed / "python", "-c", "import aiohttp; print(aiohttp.__file__)", cwd=folder)
    return Wheels(made["old"], made["new"], Path(said.strip()).parents[1])


class Environment:
    """An environment of its own, with the libraries of the installation beside the program."""

    def __init__(self, folder: Path, wheels: Wheels) -> None:
        self._folder = folder
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(f"{wheels.libraries}\n", "utf-8")
        self._packages = packages

    def install(self, wheel: Path) -> None:
        again = ("--quiet", "--no-deps", "--force-reinstall")
        run(self._folder / "bin/python", "-m", "pip", "install", *again, wheel, cwd=self._folder)

    def modules(self) -> set[str]:
        found = {
            path for name in ("bot", "handlers") for path in (self._packages / name).rglob("*")
        }
        return {str(path) for path in found if "__pycache__" not in path.parts}

    def run(self, settings: dict[str, str], *words: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [self._folder / "bin/gatehouse", *map(str, words)],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], **settings},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    def process(self, fleet: Fleet) -> "Installed":
        process = Installed(fleet.environment, fleet.session, self._folder)
        fleet.processes.append(process)
        return process


class Installed(BotProcess):
    """`gatehouse` of an environment, in a folder that is no checkout."""

    def __init__(self, environment, session, folder: Path) -> None:
        super().__init__(environment, session)
        self._folder = folder

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            self._folder / "bin/gatehouse",
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], **self._environment},
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
            await asyncio.gather(*(one.kill() for one in fleet.processes))


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
        return next((one for one in posted if identity in one.all_text), None)

    return await fleet.slack.until(card)


async def approve(fleet: Fleet, card: Message) -> None:
    await fleet.slack.click("U0APPROVER", card, "Approve")
    await fleet.slack.until(lambda: "Applied" in card.all_text)


async def test_second_day(empty_database_url, wheels, tmp_path):
    environment, saved = Environment(tmp_path / "program", wheels), tmp_path / "saved"
    environment.install(wheels.old)
    modules = environment.modules()
    async with surroundings(empty_database_url) as fleet:
        process = await serving(environment, fleet)
        await approve(fleet, await ask(fleet, "+15551001"))
        waiting = await ask(fleet, "+15551002")
        status, said = environment.run(fleet.environment, "backup", saved)
        assert (status, "audit is intact" in said) == (0, True), said
        status, said = environment.run(fleet.environment, "restore", saved)
        assert (status, "Stop" in said) == (2, True), said
        await process.stop()

        environment.install(wheels.new)
        process = await serving(environment, fleet)
        await approve(fleet, waiting)
        await process.stop()
        assert environment.run(fleet.environment, "audit", "verify")[0] == 0

        environment.install(wheels.old)
        assert environment.modules() == modules
        status, said = environment.run(fleet.environment)
        assert (status, "newer version of Gatehouse" in said) == (2, True), said
        status, said = environment.run(fleet.environment, "restore", saved)
        assert (status, "audit is intact" in said) == (0, True), said
        await serving(environment, fleet)
        listed = await fleet.ask("U0APPROVER", "/testusers", "requests")
        assert "+15551002" in listed.all_text
        assert environment.run(fleet.environment, "audit", "verify")[0] == 0


@pytest.mark.postgres
async def test_no_click_is_lost_in_a_rolling_upgrade(empty_postgres_url, wheels, tmp_path):
    old, new = (Environment(tmp_path / name, wheels) for name in ("old", "new"))
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
        new = [one.all_text for one in fleet.seen_by("U0APPROVER")[told:]]
        return "again" if any("again" in one for one in new) else ""

    if await fleet.slack.until(answer, timeout=30) == "again":
        fleet.slack.bot_url = upgraded
        await approve(fleet, card)
