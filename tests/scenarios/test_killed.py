"""If a process is killed between the click and the last message, no work is lost or repeated.

The test kills a real process after each commit and after each call that changes something. The next
process completes the work. `make faults` runs the same test on PostgreSQL.
"""

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from sandbox.ports import free_port
from sandbox.services.state import Flow
from sandbox.slack.server import RunningSlack
from tests.support.databases import copy_sqlite
from tests.support.fleet import Fleet, running_fleet
from tests.support.processes import BotProcess
from tests.support.world import ADA, OTTO, WELCOME

MOST_STEPS = 200
NAME = re.compile(r"\d+ \d+")
WORLDS = 8  # beside each other, as most of the time is waiting for leases to lapse


@dataclass
class Mortal:
    """Controls a bot that is repeatedly killed and restarted."""

    fleet: Fleet
    process: BotProcess

    @property
    def deaths(self) -> int:
        """Return the number of processes that have died."""
        return sum(NAME.fullmatch(line) is not None for line in self.process.lines) - 1

    @property
    def slack(self) -> RunningSlack:
        return self.fleet.slack

    @property
    def flow(self) -> Flow:
        return self.fleet.services.state.flows[WELCOME]

    async def ask(self, identity: str):
        """Repeat the command until a card appears. A command can be lost if the process dies."""
        cards = self.slack.workspace.messages
        before = len(cards("C0APPROVALS"))
        while len(cards("C0APPROVALS")) == before:
            deaths = self.deaths
            await self.process.ready()
            await self.slack.command(OTTO, "C0GENERAL", "/testusers", f"add welcome {identity}")
            await self.slack.until(
                lambda deaths=deaths: len(cards("C0APPROVALS")) > before or self.deaths > deaths
            )
        return cards("C0APPROVALS")[before]

    async def click(self, card) -> None:
        """Keep clicking, as a person would, until the bot acknowledges a click."""
        while "Approve" in card.buttons:
            delivery = await self.slack.click(ADA, card, "Approve")
            if delivery.status == 200:
                return
            await self.process.ready()


@asynccontextmanager
async def mortal(database_url: str, first: int, every: int):
    settings = {"port": str(free_port()), "commands_per_minute": "0"}
    launcher = ("-m", "tests.support.killed", str(first), str(every))
    async with running_fleet(database_url, 0, **settings) as fleet:
        fleet.services.state.flows[WELCOME].identities[:] = ["old"]
        process = await fleet.add(launcher)
        fleet.slack.bot_url = process.address
        try:
            yield Mortal(fleet, process)
            assert fleet.tracebacks == []
        finally:
            await process.stop()


async def one_approval(world: Mortal, number: int) -> bool:
    """Approve a change. Return True if the process was killed before the work was done."""
    deaths = world.deaths
    card = await world.ask(f"+{number}")
    await world.click(card)
    await world.slack.until(lambda: "Applied" in card.all_text)

    def told():
        return [item for item in world.slack.workspace.dm(OTTO) if f"`+{number}`" in item.all_text]

    await world.slack.until(told)
    assert world.flow.identities == ["old", *(f"+{n}" for n in range(1, number + 1))]
    assert len(told()) == 1
    cards = world.slack.workspace.messages("C0APPROVALS")
    assert [f"`+{number}`" in item.all_text for item in cards].count(True) == 1
    if world.deaths == deaths:
        await asyncio.sleep(1)  # what follows the last message has its steps too
    return world.deaths > deaths


async def every_nth_step(database_url: str, first: int) -> int:
    """Kill the process at step `first`, and then every `WORLDS` steps.

    Return the number of kills.
    """
    async with mortal(database_url, first, WORLDS) as world:
        for number in range(1, MOST_STEPS):
            if not await one_approval(world, number):
                break
        posts = [identities[-1] for identities in world.flow.history]
        assert posts == [f"+{n}" for n in range(1, number + 1)]
        return world.deaths


@pytest.fixture
def urls(tmp_path, sqlite_template):
    paths = [tmp_path / f"{n}.db" for n in range(WORLDS)]
    for path in paths:
        copy_sqlite(sqlite_template, path)
    return [f"sqlite:///{path}" for path in paths]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_kill_at_any_step_leaves_one_change_and_every_message(urls):
    deaths = await asyncio.gather(*(every_nth_step(url, n + 1) for n, url in enumerate(urls)))
    # From the command to the last message there are more than ten steps: an approval alone has
    # eight transactions. Every world is killed, some of them more than once.
    assert all(deaths)
    assert sum(deaths) > 10
