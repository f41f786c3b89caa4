"""Tests the gateway under heavy load, when many calls are declined or have to wait."""

import asyncio
import hashlib
import json
import math
import statistics
import sys
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from sqlalchemy import Row, select, update

from bot.ops.clock import SystemClock
from bot.quotas.rules.quota import GRACE_SECONDS, SLOT_SECONDS
from bot.quotas.store.accounts import UNSENT
from bot.quotas.tables import quota_calls as calls
from bot.quotas.tables import quota_organizations as organizations
from bot.services.http import TOTAL_SECONDS
from bot.store.engine import Database
from sandbox.ports import free_port
from sandbox.services.calls import Call
from sandbox.services.organizations import many_organizations
from sandbox.services.state import ServicesState
from tests.support.fleet import running_fleet
from tests.support.steady import seconds_now

CENTER, LATENCY_SECONDS = "eu", 0.05
# The calls that clients may make in a minute.
A_MINUTE = 80
FLOOD_CONNECTIONS, SLOWED = 190, 3.0
POLITE_CALLS, SETTLING_SECONDS = 30, 3.0
A_SECOND, WAIT_SECONDS, ORGANIZATIONS = 25, 2, 3
LATEST_SECONDS = 1.0
HOLD_SECONDS = TOTAL_SECONDS + GRACE_SECONDS
FLOOD = """
import asyncio, sys, aiohttp
async def main(url, token, connections):
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        async def again():
            while True:
                try:
                    async with session.get(url) as answer:
                        await answer.read()
                except aiohttp.ClientError:
                    await asyncio.sleep(0.1)
        await asyncio.gather(*(again() for _ in range(connections)))
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def token_of(client: str) -> str:
    return f"soak-token-of-{client}"


@dataclass
class Crowd:
    """Holds a running gateway's address and the state of the service that the gateway calls."""

    state: ServicesState
    url: str
    ids: list[str]

    def address(self, number: int) -> str:
        return f"{self.url}/{CENTER}/organizations?organization_id={self.ids[number]}"

    def calls(self, number: int) -> list[Call]:
        at = self.ids[number]
        return [call for call in self.state.calls if call.organization_id == at]


@asynccontextmanager
async def crowd(database_url: str, latency: float = 0.0) -> AsyncIterator[Crowd]:
    state = ServicesState(latency_seconds=latency)
    state.set_organizations(CENTER, many_organizations(CENTER, ORGANIZATIONS))
    ids = [
        organization.organization_id for organization in state.data_centers[CENTER].organizations
    ]
    for one in ids:
        state.limits.plans[CENTER, one] = "enterprise"
    clients = {
        name: {
            "token_sha256": hashlib.sha256(token_of(name).encode()).hexdigest(),
            "organizations": "*",
        }
        for name in ("flood", "polite")
    }
    port = free_port()
    settings = {
        "gateway_clients": json.dumps(clients),
        "gateway_port": str(port),
        "inventory_default_plan": "enterprise",
        "inventory_watch": "off",
    }
    async with running_fleet(database_url, 1, services=state, **settings) as fleet:
        yield Crowd(state, f"http://127.0.0.1:{port}", ids)
        assert not fleet.tracebacks, fleet.tracebacks[0]


async def declined(database_url: str, name: str, slowed: float = SLOWED) -> dict[str, object]:
    """Measure how much a flood of declined calls slows down another client."""
    headers = {"Authorization": f"Bearer {token_of('polite')}"}
    async with crowd(database_url) as running, aiohttp.ClientSession(headers=headers) as session:
        await median(running, session)
        alone = await median(running, session)
        async with flood(running):
            await asyncio.sleep(SETTLING_SECONDS)
            beside = await median(running, session, 1)
        row = f"{alone * 1e3:.1f} ms and {beside * 1e3:.1f} ms"
        found: dict[str, object] = {
            f"gateway: median alone and beside {FLOOD_CONNECTIONS} declined, {name}": row,
            f"gateway: slowed so many times, {name}": round(beside / alone, 2),
        }
        assert beside <= slowed * alone, found
        return {**found, **await truth(database_url, running.state, name)}


async def median(running: Crowd, session: aiohttp.ClientSession, number: int = 2) -> float:
    took = []
    for _ in range(POLITE_CALLS):
        began = seconds_now()
        async with session.get(running.address(number)) as answer:
            await answer.read()
            assert answer.status == 200, await answer.text()
        took.append(seconds_now() - began)
    return statistics.median(took)


@asynccontextmanager
async def flood(running: Crowd) -> AsyncIterator[None]:
    """Call one organization nonstop from a separate process."""
    asked = [running.address(0), token_of("flood"), str(FLOOD_CONNECTIONS)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", FLOOD, *asked)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def waiting(
    database_url: str,
    seconds: float,
    name: str,
    count: int = ORGANIZATIONS,
    skipped: float = 0.0,
    latest: float = LATEST_SECONDS,
) -> dict[str, object]:
    """Call `count` organizations more often than their limits allow.

    Calls are sent for `seconds` seconds, and each call waits up to two seconds for its turn. If
    `skipped` isn't 0, the test first makes as many calls as the limit allows in one minute. The
    test then moves the recorded times of these calls back by `skipped` seconds. `latest` is the
    maximum number of seconds that a slot may stay free while calls are waiting.
    """
    answers: Counter[str] = Counter()
    headers = {"Authorization": f"Bearer {token_of('flood')}", "Prefer": f"wait={WAIT_SECONDS}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        crowd(database_url, LATENCY_SECONDS) as running,
        aiohttp.ClientSession(headers=headers, connector=connector) as session,
    ):
        tasks: set[asyncio.Task[None]] = set()

        async def ask(number: int) -> None:
            async with session.get(running.address(number)) as answer:
                await answer.read()
                answers[str(answer.status)] += 1

        began, asked, is_full = seconds_now(), 0, not skipped
        while not is_full or seconds_now() - began < seconds:
            if not is_full and answers["200"] >= A_MINUTE * count:
                await make_older(database_url, running.state, skipped)
                began, asked, is_full = seconds_now(), 0, True
            for number in range(count):
                task = asyncio.create_task(ask(number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            asked += 1
            await asyncio.sleep(max(0.0, began + asked / A_SECOND - seconds_now()))
        await asyncio.gather(*tasks)
        slowest = await latest_grant(database_url)
        found: dict[str, object] = {
            f"gateway: {A_SECOND} a second wait {WAIT_SECONDS} s, {name}": dict(answers),
            f"gateway: seconds to the latest grant of a free slot, {name}": round(slowest, 3),
            f"gateway: refused by the service, {name}": len(running.state.refused),
            **await truth(database_url, running.state, name),
        }
        assert not running.state.refused, found
        assert slowest <= latest, found
        least = A_MINUTE * (1 + math.floor((seconds + skipped) / (SLOT_SECONDS + LATEST_SECONDS)))
        for number in range(count):
            assert len(running.calls(number)) >= least - A_MINUTE // 10, found
        return found


async def make_older(database_url: str, state: ServicesState, seconds: float) -> None:
    """Change the recorded times of all calls, as if the calls had been made earlier."""
    database = Database(database_url, SystemClock())
    times = (calls.c.reserved_at, calls.c.slot_free_at, calls.c.permit_until)
    try:
        async with database.transaction() as tx:
            await tx.connection.execute(
                update(calls).values({column: column - seconds for column in times})
            )
    finally:
        await database.close()
    for usage in state.limits.usage.values():
        usage.minute = deque(at - seconds for at in usage.minute)


async def latest_grant(database_url: str) -> float:
    """Return the longest time that a slot stayed free while calls were waiting.

    A slot becomes free about 60 seconds after the response headers arrive.
    """
    made: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in await sent_calls(database_url):
        made[row.organization].append((row.reserved_at, row.slot_free_at))
    late = [0.0]
    for times in made.values():
        reserved, free = (sorted(column) for column in zip(*times, strict=True))
        late += [at - since for at, since in zip(reserved[A_MINUTE:], free, strict=False)]
    return max(late)


async def sent_calls(database_url: str) -> list[Row[Any]]:
    """Return the ledger's rows for all calls that were sent.

    Each row also contains the organization's data center and ID.
    """
    database = Database(database_url, SystemClock())
    query = select(organizations.c.data_center, organizations.c.organization_id, calls)
    joined = query.join(calls, calls.c.organization == organizations.c.id)
    try:
        async with database.read_only() as tx:
            rows = await tx.connection.execute(joined.where(calls.c.slot_free_at != UNSENT))
            return list(rows)
    finally:
        await database.close()


async def truth(database_url: str, state: ServicesState, name: str) -> dict[str, object]:
    """Check that the ledger and the service counted the same calls.

    Calls whose outcome is unknown may or may not have reached the service.
    """
    seen = Counter((call.data_center, call.organization_id) for call in counted(state))
    settled: Counter[tuple[str, str | None]] = Counter()
    in_doubt: defaultdict[tuple[str, str | None], int] = defaultdict(int)
    for row in await sent_calls(database_url):
        key = row.data_center, row.organization_id or None
        if abs(row.permit_until - row.reserved_at - HOLD_SECONDS) < 0.01:
            in_doubt[key] += 1
        else:
            settled[key] += 1
    for key in {*seen, *settled, *in_doubt}:
        told = f"{key}: {seen[key]} seen, {settled[key]} counted, {in_doubt[key]} in doubt"
        assert settled[key] <= seen[key] <= settled[key] + in_doubt[key], told
    both = f"{seen.total()}, {settled.total()} and {sum(in_doubt.values())}"
    return {f"calls seen by the service, counted, and in doubt, {name}": both}


def counted(state: ServicesState) -> list[Call]:
    return [call for call in state.calls if call.service == "inventory"]
