"""The stand-in services, running, and a client to call them with."""

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
        # The client tries a GET twice on its own after a broken connection; one call is one here.
        session._retry_connection = False
        yield session
