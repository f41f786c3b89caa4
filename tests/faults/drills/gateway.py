"""A gateway is killed between the grant and the answer of a client's call."""

import asyncio
import hashlib
import json

import aiohttp

from bot.ops.clock import SystemClock
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.plans import Plan
from bot.quotas.rules.quota import GRACE_SECONDS, Terms
from bot.quotas.store import accounts
from bot.quotas.store.accounts import Account
from bot.store.engine import Database
from sandbox.ports import free_port
from sandbox.services.faults import Fault, FaultKind
from tests.faults.drill import Drill, Notes
from tests.support.databases import database_of
from tests.support.fleet import running_fleet
from tests.support.story import REQUESTER

ORGANIZATION = OrganizationKey("eu", "20077314")
TOKEN = "drill-token"
HASH = hashlib.sha256(TOKEN.encode()).hexdigest()
CLIENTS = {"script": {"token_sha256": HASH, "organizations": "*"}}
TIMEOUT_SECONDS = 10.0
HELD_SECONDS = TIMEOUT_SECONDS + GRACE_SECONDS


async def killed(notes: Notes) -> None:
    """The service has the call; the process that made it is killed, and another one started."""
    async with (
        database_of(notes.database, notes.folder) as url,
        running_fleet(url, 0, inventory_watch="off", gateway_clients=json.dumps(CLIENTS)) as fleet,
    ):
        port = free_port()
        first = await fleet.add(gateway_port=str(port))
        hold = Fault(FaultKind.HOLD, "inventory", times=1)
        fleet.services.state.faults.add(hold)
        lost = asyncio.create_task(call(port))
        await hold.reached()
        await first.kill()
        notes.seen.append(f"the client: {await lost}")
        hold.lift()
        async with notes.recovery():
            await fleet.add(gateway_port=str(port))
            assert await call(port) == "200"
        assert await held(url) == (2, 2, 1), await held(url)
        calls = [item for item in fleet.services.state.calls if item.service == "inventory"]
        assert len(calls) == 2, calls
        notes.holds("two calls made and two counted")
        await notes.people_see(fleet, REQUESTER, "/ratelimits", str(ORGANIZATION), "script")

        async def is_free() -> bool:
            return await held(url) == (2, 2, 0)

        await notes.until(is_free, HELD_SECONDS + 5)
        notes.holds("its place among the calls that run is free after the time-out, its slot later")
        assert not fleet.tracebacks, fleet.tracebacks[0]


async def call(port: int) -> str:
    """Call as a client does; return the status, or what became of the connection."""
    url = f"http://127.0.0.1:{port}/{ORGANIZATION.data_center}/organizations"
    query = {"organization_id": ORGANIZATION.organization_id}
    try:
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
            session.get(url, params=query) as answer,
        ):
            await answer.read()
            return str(answer.status)
    except aiohttp.ClientError:
        return "its connection broke"


async def held(url: str) -> tuple[int, int, int]:
    """What the ledger has of the organization: calls made, slots of the minute, calls that run."""
    database = Database(url, SystemClock())
    try:
        async with database.read_only() as tx:
            terms = Terms(lambda _key: Plan.FREE, TIMEOUT_SECONDS)
            account: Account | None = await accounts.load(tx, ORGANIZATION, terms)
    finally:
        await database.close()
    assert account is not None
    return account.made, account.in_use.minute, account.in_use.concurrent


DRILLS = (
    Drill(
        "kill -9 between a gateway's grant and its answer",
        "The client's call is made once and counted once; it holds its slot and its place for as"
        " long as the service may be at work on it; the next process serves the next call at once.",
        killed,
    ),
)
