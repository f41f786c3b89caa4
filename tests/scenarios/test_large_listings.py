"""The bot acknowledges other people's commands while it processes a 9.5 MB listing."""

import asyncio
import json
import time

import pytest

from tests.support.http import RawServer
from tests.support.steady import yardstick_seconds
from tests.support.world import running_world

SIZE = 9_500_000
# Every acknowledgement takes less CPU time than this, including other work. A yardstick is 50 ms
# on an idle machine, and as slow as the machine.
MOST_YARDSTICKS = 20
ONE = '{"organization_id": "1", "name": "NAME", "x": X}'
NAMED = '{"organization_id": "ID", "name": "NAME"}'


def repeated(part: str) -> str:
    """Repeat an item, with a new ID each time, until the list is about `SIZE` bytes long."""
    count = SIZE // (len(part.replace("ID", "1" * 10).encode()) + 1)
    return ",".join(part.replace('"ID"', f'"{10**9 + number}"') for number in range(count))


def listing_of(organizations: str) -> bytes:
    return f'{{"code": 0, "organizations": [{organizations}]}}'.encode()


LISTINGS = {
    "long names": (lambda: repeated(NAMED.replace("NAME", "한" * 400)), "organizations* in 1"),
    "a longer name": (lambda: ONE.replace("NAME", "\ufdfa" * (SIZE // 3)), "*1 organization* in 1"),
    "brackets": (lambda: ONE.replace("X", f"[{repeated('[[]]')}]"), "*1 organization* in 1"),
    "many": (lambda: repeated(NAMED), "(field “organizations”)"),
    "no objects": (lambda: repeated("1"), "(field “organizations.0”)"),
    "wrong IDs": (lambda: repeated(NAMED.replace('"ID"', "1")), "organization_id"),
}


@pytest.mark.parametrize("kind", LISTINGS)
async def test_a_large_listing_holds_up_nobody_else(sqlite_url, kind):
    organizations, words = LISTINGS[kind]
    body = listing_of(organizations().replace("X", "[]"))
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with RawServer(head + body).running() as server:
        center = {"com": {"authtoken": "demo-com", "base_url": server.url}}
        settings = {"inventory_data_centers": json.dumps(center), "inventory_watch": "off"}
        async with running_world(sqlite_url, **settings) as world:
            asked = asyncio.ensure_future(world.ask("U0OPERATOR", "/orgs", "a"))
            took, before = [], yardstick_seconds()
            while not asked.done():
                began = time.process_time()
                await world.slack.command("U0VIEWER", "C0GENERAL", "/gatehouse", "whoami")
                took.append(time.process_time() - began)
            assert max(took) < MOST_YARDSTICKS * max(before, yardstick_seconds())
            assert words in (await world.ask("U0OPERATOR", "/orgs")).text
