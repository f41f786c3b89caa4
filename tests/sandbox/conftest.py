"""The stand-in services, running, and a client to call them with."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def services(clock: Clock) -> AsyncIterator[RunningServices]:
    async with running_services(ServicesState(now=clock)) as running:
        yield running


@pytest.fixture
async def http(services: RunningServices) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(services.url, timeout=aiohttp.ClientTimeout(10)) as session:
        yield session
