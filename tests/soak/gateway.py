"""The gateway under load: three processes, greedy clients, people beside them, kill -9."""

import asyncio
import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from sqlalchemy import select

from bot.model.quotas.calls import client_named
from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.store.tables import quota_calls
from sandbox.ports import free_port
from sandbox.services.calls import Call
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.limits import LimitRules
from sandbox.services.state import ServicesState
from tests.support.fleet import Fleet, NoAnswerError, running_fleet
from tests.support.loop_time import seconds_now
from tests.support.processes import BotProcess

PROCESSES, CLIENTS = 3, 12
CENTER = "eu"
# What clients may use of a minute, and for how long a slot is held once its call was answered.
A_MINUTE, SLOT_SECONDS = 80, 60.05
# A call without an answer holds its slot until it cannot be at work any more.
GIVEN_UP_SECONDS = 15.0
LATENCY_SECONDS = 0.1
FAULTS = ((FaultKind.LATE, 1.5), (FaultKind.SLOW, 2.5), (FaultKind.CUT, 0.0))
FAULT_EVERY_SECONDS = 6.0
CHECK_SECONDS, PAUSE_SECONDS = 2.0, 4.0
WAIT_SECONDS = 60
LEAST_USED = 0.98
UNFAIR = 0.1
# In less time a slot is taken once or twice, which tells nothing of parts.
TELLING_SECONDS = 120.0
PERSON = "U0OPERATOR"
# Whose connection broke has another call waiting meanwhile.
CALLERS = 2
# A client of its own organization, with more callers than its share lets through.
QUARTER, SHARE, QUARTERS_CALLERS = "quarter", 0.25, 6


@dataclass
class Gateways:
    """A soak under way: who listens where, and what came of it."""

    fleet: Fleet
    ports: list[int]
    dice: random.Random
    ends_at: float
    answers: Counter[str] = field(default_factory=Counter)
    checks: list[float] = field(default_factory=list)
    lost_checks: int = 0
    # Held while a person's check is under way: what the service does to that call is not the
    # gateway's doing.
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    killed: list[BotProcess] = field(default_factory=list)

    @property
    def state(self) -> ServicesState:
        return self.fleet.services.state

    @property
    def is_over(self) -> bool:
        return self.state.now() >= self.ends_at

    def organization(self, client: str) -> str:
        organizations = self.state.data_centers[CENTER].organizations
        return organizations[1 if client == QUARTER else 0].organization_id

    def calls(self, client: str) -> list[Call]:
        """What the service saw of the client's organization."""
        at = self.organization(client)
        return [one for one in self.state.calls if one.organization_id == at]


def token_of(client: str) -> str:
    return f"soak-token-of-{client}"


def equals() -> list[str]:
    """The clients with equal shares."""
    return [f"client-{number}" for number in range(CLIENTS)]


def clients() -> dict[str, dict[str, object]]:
    hashes = {name: hashlib.sha256(token_of(name).encode()).hexdigest() for name in equals()}
    quarter = hashlib.sha256(token_of(QUARTER).encode()).hexdigest()
    return {
        **{name: {"token_sha256": one, "organizations": "*"} for name, one in hashes.items()},
        QUARTER: {"token_sha256": quarter, "organizations": "*", "share": SHARE},
    }


async def soak(
    database_url: str, seconds: float, kill_every: float, seed: int
) -> dict[str, object]:
    """Work for a time; return rows of the table.

    Raises:
        AssertionError: The service refused a call, what could be used was not, a client got more or
            less than its part, a person waited, or something broke.
    """
    async with gateways(database_url, seconds, seed) as running:
        names = [*equals() * CALLERS, *[QUARTER] * QUARTERS_CALLERS]
        callers = [asyncio.create_task(greedy(running, name)) for name in names]
        others = [
            asyncio.create_task(work)
            for work in (person(running), killer(running, kill_every), disturber(running))
        ]
        await asyncio.wait(callers, timeout=seconds + WAIT_SECONDS + 20)
        for task in (*callers, *others):
            task.cancel()
        results = await asyncio.gather(*callers, *others, return_exceptions=True)
        broken = [one for one in results if isinstance(one, Exception)]
        assert not broken, broken
        return verdict(running, await granted(database_url), seconds)


@asynccontextmanager
async def gateways(database_url: str, seconds: float, seed: int) -> AsyncIterator[Gateways]:
    """Three processes with a gateway each, on one database."""
    dice = random.Random(seed)

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds * dice.uniform(0.3, 1.7))

    state = ServicesState(
        rules=LimitRules(block_seconds=60), sleep=sleep, latency_seconds=LATENCY_SECONDS
    )
    for at in state.data_centers[CENTER].organizations[:2]:
        state.limits.plans[CENTER, at.organization_id] = "enterprise"
    settings = {
        "gateway_clients": json.dumps(clients()),
        "inventory_default_plan": "enterprise",
        "commands_per_minute": "0",
    }
    async with running_fleet(database_url, 0, services=state, **settings) as fleet:
        ports = [free_port() for _ in range(PROCESSES)]
        await asyncio.gather(*(fleet.add(gateway_port=str(port)) for port in ports))
        yield Gateways(fleet, ports, dice, state.now() + seconds)


async def disturber(running: Gateways) -> None:
    """Now and then a call comes late, takes long, or loses its answer."""
    while True:
        await asyncio.sleep(running.dice.uniform(0, 2 * FAULT_EVERY_SECONDS))
        kind, seconds = running.dice.choice(FAULTS)
        async with running.checking:
            running.state.faults.add(Fault(kind, "inventory", CENTER, seconds=seconds, times=1))


async def greedy(running: Gateways, client: str) -> None:
    """Call without end, through whichever gateway answers."""
    headers = {"Authorization": f"Bearer {token_of(client)}", "User-Agent": client}
    query = {"organization_id": running.organization(client)}
    async with aiohttp.ClientSession(headers=headers) as session:
        while (left := running.ends_at - running.state.now()) > 0:
            url = f"http://127.0.0.1:{running.dice.choice(running.ports)}/{CENTER}/organizations"
            # Nobody stands in line for a call that comes when all is over.
            wait = {"Prefer": f"wait={min(WAIT_SECONDS, math.ceil(left))}"}
            try:
                async with session.get(url, params=query, headers=wait) as answer:
                    await answer.read()
            except (aiohttp.ClientError, OSError):
                running.answers["connection broke"] += 1
                await asyncio.sleep(0.2)
                continue
            declined = answer.headers.get("Gatehouse-Declined")
            running.answers[f"declined {declined}" if declined else str(answer.status)] += 1
            if answer.status != 200:
                told = float(answer.headers.get("Retry-After", "0.2"))
                await asyncio.sleep(min(told, max(0.0, running.ends_at - running.state.now())))


async def person(running: Gateways) -> None:
    """Check the organization again and again; a command dies with the process that has it."""
    while not running.is_over:
        async with running.checking:
            running.state.faults.lift(service="inventory")
            await check(running)
        await asyncio.sleep(PAUSE_SECONDS)


async def check(running: Gateways) -> None:
    organization = running.organization(equals()[0])
    began, kills = seconds_now(), len(running.killed)
    try:
        answer = await running.fleet.ask(PERSON, "/ratelimits", f"check {CENTER}/{organization}")
    except NoAnswerError:
        assert len(running.killed) > kills, "a check was never answered"
    if len(running.killed) > kills:
        running.lost_checks += 1
    else:
        assert "succeeded (" in answer.all_text, answer.all_text
        running.checks.append(seconds_now() - began)


async def killer(running: Gateways, every_seconds: float) -> None:
    """Kill one process after the other, and start it again where it listened."""
    processes, at = running.fleet.processes, seconds_now()
    while True:
        at += every_seconds
        await asyncio.sleep(at - seconds_now())
        number = running.dice.randrange(PROCESSES)
        await processes[number].kill()
        running.killed.append(processes[number])
        await running.fleet.add(gateway_port=str(running.ports[number]))
        # The new one takes the place of the old one.
        processes[number] = processes.pop()


async def granted(database_url: str) -> Counter[str]:
    """How many calls the ledger has of each client."""
    database = Database(database_url, SystemClock())
    try:
        async with database.read_only() as tx:
            rows = await tx.connection.execute(select(quota_calls.c.slack_user_id))
            return Counter(client_named(row.slack_user_id) for row in rows)
    finally:
        await database.close()


def held_until(call: Call) -> float:
    """When the slot of a call is free again, by what the service saw of it."""
    if call.status is None or call.finished_at is None:
        return call.arrived_at + GIVEN_UP_SECONDS + SLOT_SECONDS
    return call.finished_at + SLOT_SECONDS


def used(calls: Collection[Call], end: float, allowed: int) -> float:
    """Which part of so many slots was held, from when all of them were for the first time."""
    times = sorted(one.arrived_at for one in calls)
    assert len(times) >= allowed, f"only {len(times)} calls"
    begin = times[allowed - 1]
    changes = [(one.arrived_at, 1) for one in calls] + [(held_until(one), -1) for one in calls]
    area, held, at = 0.0, 0, begin
    for when, change in [*sorted(changes), (end, 0)]:
        until = min(max(when, begin), end)
        area += min(held, allowed) * (until - at)
        held, at = held + change, until
    return area / (allowed * (end - begin))


def most_in_a_minute(calls: Iterable[Call]) -> int:
    """The most calls that the service counted within any 60 seconds."""
    times = sorted(one.counted_at for one in calls if one.counted_at is not None)
    return max((sum(at <= other < at + 60 for other in times) for at in times), default=0)


def verdict(running: Gateways, made: Counter[str], seconds: float) -> dict[str, object]:
    """Hold what happened to what was promised; parts and times only after long enough."""
    state, quarter = running.state, int(A_MINUTE * SHARE)
    # The watcher looks at its organization too.
    its_own = [one for one in running.calls(QUARTER) if one.user_agent == QUARTER]
    most_of_quarter = most_in_a_minute(its_own)
    found: dict[str, object] = {
        "gateway: calls counted by the service": len([o for o in state.calls if o.counted_at]),
        "gateway: refused by the service": len(state.refused),
        f"gateway: most in a minute with a share of {SHARE}": f"{most_of_quarter} of {quarter}",
        "gateway: kills": len(running.killed),
        "gateway: answers": dict(running.answers),
        "gateway: checks lost with a killed process": running.lost_checks,
    }
    assert not state.refused, found
    tracebacks = [
        line for one in (*running.killed, *running.fleet.processes) for line in one.tracebacks
    ]
    assert not tracebacks, tracebacks[:1]
    assert "500" not in running.answers, found
    assert most_of_quarter <= quarter, found
    if seconds >= TELLING_SECONDS:
        found |= long_verdict(running, made, found)
    return found


def long_verdict(
    running: Gateways, made: Counter[str], so_far: dict[str, object]
) -> dict[str, object]:
    """What was used of what is possible, whose it was, and how long a person waited."""
    part = sum(made[name] for name in equals()) / CLIENTS
    least, most = (end(made[name] for name in equals()) for end in (min, max))
    use = used(running.calls(equals()[0]), running.ends_at, A_MINUTE)
    use_of_quarter = used(running.calls(QUARTER), running.ends_at, int(A_MINUTE * SHARE))
    slowest = max(running.checks)
    found = {
        "gateway: slots held": f"{use:.1%}, {use_of_quarter:.1%} of the share",
        "gateway: least and most of an equal part": f"{least / part:.2f} and {most / part:.2f}",
        "gateway: a person's checks, slowest": f"{len(running.checks)}, {slowest:.2f} s",
    }
    told = {**so_far, **found}
    assert use >= LEAST_USED, told
    # A call more or less is within any part.
    assert max(part - least, most - part) <= max(UNFAIR * part, 1.0), told
    assert slowest <= CHECK_SECONDS, told
    return found
