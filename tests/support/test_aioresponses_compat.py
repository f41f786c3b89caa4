"""Also says when `aioresponses_compat` may go: the last test fails then."""

import aiohttp
import pytest
from aioresponses import aioresponses

from tests.support.aioresponses_compat import FakeServices

ADDRESS = "http://127.0.0.1/listing"


async def test_answers_have_their_status_headers_and_body():
    async with aiohttp.ClientSession() as session:
        with FakeServices() as fake:
            fake.get(f"{ADDRESS}?page=1", payload={"code": 0}, headers={"X-Told": "7"})
            fake.post(ADDRESS, status=503, body=b"no")

            async with session.get(ADDRESS, params={"page": "1"}) as response:
                assert response.headers["X-Told"] == "7"
                assert await response.json() == {"code": 0}
            async with session.post(ADDRESS, data={"field": "value"}) as response:
                assert (response.status, await response.read()) == (503, b"no")


async def test_an_answer_can_be_read_in_chunks():
    async with aiohttp.ClientSession() as session:
        with FakeServices() as fake:
            fake.get(ADDRESS, body=b"abcdef")

            async with session.get(ADDRESS) as response:
                chunks = [chunk async for chunk in response.content.iter_chunked(4)]

    assert b"".join(chunks) == b"abcdef"


async def test_aioresponses_still_needs_this_help():
    async with aiohttp.ClientSession() as session:
        with aioresponses() as fake:
            fake.get(ADDRESS, payload={})

            with pytest.raises(TypeError, match="stream_writer"):
                await session.get(ADDRESS)
