"""The sandbox with the real bot, and people who look at it in Chromium."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from sandbox.launch import Sandbox, running_sandbox
from tests.browser.person import CHROMIUM, Person, chromium, person_at


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("no chromium in PATH")
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with running_sandbox() as running:
        await running.bot.start()
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def person(browser: Browser, sandbox: Sandbox) -> AsyncIterator[Person]:
    async with person_at(browser, sandbox.url) as someone:
        yield someone
        assert someone.complaints == []
