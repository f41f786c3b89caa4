"""Fixtures that run the real bot and its gateway in the test process."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from bot.gateway.clients import token_hash
from bot.organizations.rules import Organization, OrganizationKey
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Standing, Terms
from bot.quotas.store import accounts
from tests.gateway.upstream import Upstream, running_upstream
from tests.support.world import World, running_world

TOKENS = {"script": "script-token", "nightly": "nightly-token", "quarter": "quarter-token"}
CLIENTS = {
    "script": {"organizations": "*", "methods": ["GET", "HEAD", "POST"]},
    "nightly": {"organizations": ["eu/20061234"]},
    "quarter": {"organizations": "*", "share": 0.25},
}
EU = "20061234"
ITEMS = f"/eu/items?organization_id={EU}"


def gateway_clients(**changed) -> str:
    entries = {
        name: {"token_sha256": token_hash(TOKENS[name]), **entry, **changed.get(name, {})}
        for name, entry in CLIENTS.items()
    }
    return json.dumps(entries)


class Caller:
    """Simulates a script that makes calls through the gateway."""

    def __init__(self, world: World, session: aiohttp.ClientSession, upstream: Upstream) -> None:
        self.world = world
        self.session = session
        self.upstream = upstream

    @property
    def url(self) -> str:
        return self.world.bot.inventory.gateway.addresses[0]

    def call(self, path: str, client: str | None = "script", *, method="GET", **rest):
        headers = dict(rest.pop("headers", {}))
        if client is not None:
            headers["Authorization"] = f"Bearer {TOKENS[client]}"
        return self.session.request(method, f"{self.url}{path}", headers=headers, **rest)

    async def status(self, path: str, client: str | None = "script", **rest) -> int:
        async with self.call(path, client, **rest) as answer:
            await answer.read()
            return answer.status

    async def used(self) -> Standing | None:
        """Return the organization's recorded usage, or None before the first call."""
        database = self.world.bot.database
        async with database.read_only() as tx:
            terms = Terms(lambda _key: Plan.FREE)
            found = await accounts.load(tx, OrganizationKey("eu", EU), terms)
            return found if found.id else None


def data_centers(url: str) -> str:
    """Return settings for two data centers that use the same server but different credentials."""
    return json.dumps(
        {
            name: {
                "authtoken": f"inventory-{name}-secret",
                "base_url": f"{url}/{name}/inventory/v1",
            }
            for name in ("eu", "com")
        }
    )


@asynccontextmanager
async def running_gateway(database_url, **settings):
    """Run a bot, its gateway and the stand-ins until the `with` block ends.

    `settings` contains environment variables, but with lowercase names. In those of type dict,
    `UPSTREAM` stands for the address of the service.
    """
    async with running_upstream() as upstream:
        own = {
            "gateway_port": "0",
            "gateway_clients": gateway_clients(),
            "inventory_watch": "off",
            "inventory_data_centers": data_centers(upstream.url),
        }
        async with (
            running_world(database_url, **_filled({**own, **settings}, upstream.url)) as world,
            aiohttp.ClientSession() as session,
        ):
            await note_listed(world)
            yield Caller(world, session, upstream)


def _filled(settings, url: str) -> dict[str, str]:
    return {
        name: json.dumps(value).replace("UPSTREAM", url) if isinstance(value, dict) else value
        for name, value in settings.items()
    }


async def note_listed(world, ids=(EU,)) -> None:
    """Store lists of organizations for both data centers, as if the bot had fetched them."""
    for center in ("eu", "com"):
        found = tuple(
            Organization(organization_id=item, name=f"No. {item}", is_org_active=False)
            for item in ids
        )
        await world.bot.inventory.directory.accept(center, found)


@pytest.fixture
async def gateway(sqlite_url):
    async with running_gateway(sqlite_url) as caller:
        yield caller


@pytest.fixture
async def gateway_on_each(database_url):
    async with running_gateway(database_url) as caller:
        yield caller


async def hold_all(gateway) -> tuple[asyncio.Event, list[asyncio.Task]]:
    """Keep four calls in progress until the event is set.

    Clients may have at most four calls in progress at the same time.
    """
    go_on = asyncio.Event()

    async def answer(_request, _body):
        await go_on.wait()
        return web.json_response({"code": 0})

    gateway.upstream.answer = answer
    calls = [asyncio.create_task(gateway.status(ITEMS)) for _ in range(4)]
    while gateway.upstream.running < 4:
        await asyncio.wait(calls, timeout=0.01)
    return go_on, calls
