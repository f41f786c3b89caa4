"""Whoever hangs up in the middle of a request leaves no traceback."""

import asyncio

from tests.support.world import running_world

HALF = (
    b"POST /slack/events HTTP/1.1\r\nHost: gatehouse\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ncommand=%2Forgs"
)


async def test_a_caller_who_hangs_up_is_no_error(sqlite_url, caplog):
    async with running_world(sqlite_url) as world:
        address = world.slack.bot_url.removeprefix("http://")
        host, _, port = address.partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(HALF)
        await writer.drain()
        writer.transport.abort()
        await world.ask("U0VIEWER", "/orgs")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
