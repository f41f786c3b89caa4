"""A program asks over HTTP, and a process is killed: one request, one card, the same ID.

A real process dies after each step of `POST /testusers`: after each commit and each call that
changes something, so also between storing the request and answering.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Sequence
from contextlib import asynccontextmanager
from itertools import product

import aiohttp

from bot.gateway.clients import token_hash
from sandbox.ports import free_port
from tests.support.fleet import Fleet, running_fleet
from tests.support.processes import BotProcess
from tests.support.world import OTTO

TOKEN = "token"
CLIENT = {"token_sha256": token_hash(TOKEN), "owner": OTTO, "flows": ["welcome"]}
STEP = re.compile(r'\{"step": \d+, "what": "([^"]+)"')
MOST_STEPS = 20


async def ask(fleet: Fleet, port: int, text: str) -> str | None:
    """Return the request's ID, or None if the process died before it answered."""
    url = f"http://127.0.0.1:{port}/testusers"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with fleet.session.post(url, data=text, headers=headers) as answer:
            assert answer.status == 202, await answer.text()
            return (await answer.json())["request"]
    except aiohttp.ClientConnectionError:
        return None


async def mortal(fleet: Fleet, step: int, port: int) -> BotProcess:
    """Start a process that dies after this step of the next request."""
    launcher = ("-m", "tests.support.launch", "--short-leases", "--die-at", str(step))
    process = await fleet.add(launcher, gateway_port=str(port))
    os.kill(process.pid, signal.SIGUSR1)
    return process


def steps_of(process: BotProcess) -> list[str]:
    return [step for line in process.lines for step in STEP.findall(line)]


async def one_card(fleet: Fleet, identity: str) -> None:
    def cards() -> list[str]:
        messages = fleet.slack.workspace.messages("C0APPROVALS")
        return [one.all_text for one in messages if f"`{identity}`" in one.all_text]

    await fleet.slack.until(cards)
    # A request of another program or person would be named, and so would a second one of this.
    assert len(cards()) == 1
    assert "Other open requests" not in cards()[0]


async def ask_both(fleet: Fleet, ports: Sequence[int], text: str, apart: float) -> set[str | None]:
    """Ask each process, one of them slightly later, and return the answers."""

    async def later(place: int, port: int) -> str | None:
        await asyncio.sleep(apart * place)
        return await ask(fleet, port, text)

    return set(await asyncio.gather(*(later(*each) for each in enumerate(ports))))


@asynccontextmanager
async def fleet_for(url: str):
    settings = {"gateway_clients": json.dumps({"ci": CLIENT}), "commands_per_minute": "0"}
    async with running_fleet(url, 0, **settings) as fleet:
        yield fleet
        assert fleet.tracebacks == []


async def test_a_kill_at_any_step_of_asking_leaves_one_request(sqlite_url):
    died = list[str]()
    async with fleet_for(sqlite_url) as fleet:
        for step in range(1, MOST_STEPS):
            port, text = free_port(), f"add welcome +{step} because {step}"
            process = await mortal(fleet, step, port)
            first = await ask(fleet, port, text)
            if first is None:
                died.append(steps_of(process)[-1])
            await process.kill()
            process = await fleet.add(gateway_port=str(port))
            again = await ask(fleet, port, text)
            assert again is not None
            assert first in (None, again)
            await one_card(fleet, f"+{step}")
            await process.kill()
            if first is not None:
                break
    assert "commit" in died


async def test_a_kill_of_one_of_two_processes_that_are_asked_leaves_one_request(postgres_url):
    has_died = False
    async with fleet_for(postgres_url) as fleet:
        ports = free_port(), free_port()
        await fleet.add(gateway_port=str(ports[1]))
        for step, apart in product(range(1, 4), (0.0, 0.03)):
            identity = f"+{step}{apart * 100:.0f}"
            text = f"add welcome {identity} because {step}"
            process = await mortal(fleet, step, ports[0])
            answers = await ask_both(fleet, ports, text, apart)
            has_died |= None in answers
            await process.kill()
            answers.add(await ask(fleet, ports[1], text))
            assert len(answers - {None}) == 1
            await one_card(fleet, identity)
    assert has_died
