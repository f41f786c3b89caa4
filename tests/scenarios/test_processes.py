"""Several processes share one PostgreSQL: whatever they do at once is done once."""

import asyncio
import json
import os
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest

from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from sandbox.slack.server import running_slack
from tests.support.world import environment_for

WELCOME = "FW00000000000000000000000000000001"
OTTO, ADA, ABEL = "U0OPERATOR", "U0APPROVER", "U0APPROVER2"


@dataclass
class Pair:
    """Two processes of the bot, and the world that they share."""

    slack: object
    services: object
    addresses: list[str]

    @property
    def flow(self):
        return self.services.state.flows[WELCOME]

    async def cards(self, count: int):
        messages = self.slack.workspace.messages
        await self.slack.until(lambda: len(messages("C0APPROVALS")) == count, timeout=30)
        return messages("C0APPROVALS")

    async def click(self, process: int, user: str, card) -> None:
        # The address is read before the first wait, so clicks at once go where they should.
        self.slack.bot_url = self.addresses[process]
        delivery = await self.slack.click(user, card, "Approve")
        assert delivery.status == 200


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@asynccontextmanager
async def one_process(environment):
    address = f"http://127.0.0.1:{environment['PORT']}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot"),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await ready(address)
        yield address
    finally:
        process.terminate()
        await process.wait()


async def ready(address: str) -> None:
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{address}/readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)


@pytest.fixture
async def pair(postgres_url):
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(running_services(ServicesState()))
        slack = await stack.enter_async_context(running_slack())
        common = environment_for(slack, services, postgres_url) | {"COMMANDS_PER_MINUTE": "0"}
        addresses = [
            await stack.enter_async_context(one_process({**common, "PORT": str(free_port())}))
            for _ in range(2)
        ]
        slack.bot_url = addresses[0]
        services.state.flows[WELCOME].identities.clear()
        yield Pair(slack, services, addresses)


def said(pair: Pair, user: str) -> str:
    return json.dumps([one.text for one in pair.slack.workspace.ephemerals(user)])


@pytest.mark.postgres
async def test_two_approvers_in_two_processes_are_one_post(pair):
    await pair.slack.command(OTTO, "C0GENERAL", "/testusers", "add welcome +1")
    (card,) = await pair.cards(1)
    await asyncio.gather(pair.click(0, ADA, card), pair.click(1, ABEL, card))
    await pair.slack.until(lambda: "Applied" in card.all_text, timeout=30)
    await pair.slack.until(lambda: "pproved" in said(pair, ADA), timeout=30)
    await pair.slack.until(lambda: "pproved" in said(pair, ABEL), timeout=30)
    assert pair.flow.history == [["+1"]]
    answers = said(pair, ADA) + said(pair, ABEL)
    assert answers.count("You approved") == 1
    assert answers.count("It was approved by") == 1


@pytest.mark.postgres
async def test_twenty_approvals_at_once_are_all_there_with_few_calls(pair):
    names = [f"+{n}" for n in range(20)]
    for name in names:
        await pair.slack.command(OTTO, "C0GENERAL", "/testusers", f"add welcome {name}")
    cards = await pair.cards(20)
    asked = len(pair.services.state.calls)
    await asyncio.gather(*(pair.click(number % 2, ADA, card) for number, card in enumerate(cards)))
    await pair.slack.until(lambda: all("Applied" in card.all_text for card in cards), timeout=60)
    assert sorted(pair.flow.identities) == sorted(names)
    assert len(pair.services.state.calls) - asked <= 20
