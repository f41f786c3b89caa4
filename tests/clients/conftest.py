"""Fixtures shared by all client tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.http import Bench, FakeServices, open_bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as bench:
        yield bench


@pytest.fixture
def services() -> Iterator[FakeServices]:
    with FakeServices() as services:
        yield services
