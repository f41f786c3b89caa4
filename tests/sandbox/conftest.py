"""Fixtures that run the stand-in services and provide a client for them."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from tests.support.clock import FakeClock


@pytest.fixture
async def services(clock: FakeClock) -> AsyncIterator[RunningServices]:
    async with running_services(ServicesState(now=clock.monotonic)) as running:
        yield running


@pytest.fixture
async def http(services: RunningServices) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(services.url, timeout=aiohttp.ClientTimeout(10)) as session:
        # After a broken connection, the client would repeat a GET; here, a call is made once.
        session._retry_connection = False
        yield session
