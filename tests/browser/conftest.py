"""Fixtures that run the sandbox and the real bot, and open the sandbox's page in Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from sandbox.bot_process import ROOT, BotProcess
from sandbox.launch import Sandbox, running_sandbox
from tests.browser.person import BLANK, WIDE, Person, chromium, person_at
from tests.support.forks import ForkedProcess, forked


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


async def fork(bot: BotProcess) -> ForkedProcess:
    """Start the bot by forking, because a normal start takes three times as long.

    `tests/sandbox` tests normal starts.
    """
    return await forked(("-m", "bot"), ROOT, bot._environment())


@asynccontextmanager
async def sandbox_with_bot() -> AsyncIterator[Sandbox]:
    """Yield a sandbox in which the number of commands per minute is not limited."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BotProcess, "_spawn", fork)
        async with running_sandbox(COMMANDS_PER_MINUTE="0") as running:
            await running.bot.start()
            yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with sandbox_with_bot() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def window(browser: Browser) -> AsyncIterator[Person]:
    """Yield a browser window that all tests share.

    Opening a window takes a second of CPU time.
    """
    async with person_at(browser, BLANK) as someone:
        yield someone


@pytest_asyncio.fixture(loop_scope="session")
async def person(window: Person, sandbox: Sandbox) -> AsyncIterator[Person]:
    page = window.page
    window.complaints.clear()
    await page.set_viewport_size(WIDE)
    await page.emulate_media(color_scheme="light")
    await page.mouse.move(0, 0)
    await window.open(sandbox.url)
    yield window
    await page.evaluate("sessionStorage.clear()")
    await page.goto(BLANK)
    assert window.complaints == []
