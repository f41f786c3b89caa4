"""Simulates a person who uses the sandbox's page and finds elements by their visible text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, async_playwright, expect

from tests.support.needs import needs

# Chromium as root, without its own network calls, which fail noisily in a closed network.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    # After the machine was suspended, Chromium would think that a process hangs, and end it.
    "--disable-gpu-watchdog",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
BLANK = "about:blank"
WIDE = {"width": 1280, "height": 860}


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Yield a headless browser."""
    path = needs("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        await browser.close()


class Person:
    """Simulates a person who uses the page.

    `complaints` contains the errors and warnings from the browser's console.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    @property
    def log(self) -> Locator:
        """The messages in the open channel."""
        return self.page.get_by_role("log")

    @property
    def composer(self) -> Locator:
        """The message box."""
        return self.page.get_by_role("textbox", name="Message")

    @property
    def newest(self) -> Locator:
        """The newest message in the open channel."""
        return self.log.get_by_role("article").last

    async def open(self, url: str) -> None:
        """Open the page and wait until it shows a channel."""
        await self.page.goto(url)
        if url != BLANK:
            await expect(self.page.get_by_role("heading", level=1)).not_to_be_empty()

    async def act_as(self, name: str) -> None:
        """Choose which person to act as. `name` is the beginning of the person's name."""
        select = self.page.get_by_label("Acting as")
        labels = await select.locator("option").all_text_contents()
        await select.select_option(label=next(label for label in labels if label.startswith(name)))

    async def go_to(self, channel: str) -> None:
        """Open a channel. The name `Gatehouse` opens the direct messages with the bot."""
        link = self.page.get_by_role("link", name=channel, exact=True)
        heading = self.page.get_by_role("heading", level=1)
        await link.click()
        try:
            await expect(heading).to_have_text(channel, timeout=3000)
        except AssertionError:
            # A change redrew the list between press and release, so there was no click.
            await link.click()
        await expect(heading).to_have_text(channel)

    async def type(self, text: str) -> None:
        """Write a message and send it."""
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def services(self) -> Locator:
        """Open the services panel. Wait until the buttons in the panel have stopped moving."""
        panel = self.page.get_by_role("complementary", name="Services")
        if not await panel.is_visible():
            await self.page.get_by_role("button", name="Services").click()
        organization = panel.get_by_label("Organization").first
        await expect(organization.locator("option").first).to_be_attached()
        return panel

    def button(self, name: str) -> Locator:
        """Return the last button with this name in the open channel."""
        return self.log.get_by_role("button", name=name, exact=True).last


@asynccontextmanager
async def person_at(browser: Browser, url: str, **options: Any) -> AsyncIterator[Person]:
    """Open a new browser window, and yield the person who uses the window.

    `options` are passed to Playwright's `new_context`.
    """
    context = await browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
    try:
        person = Person(await context.new_page())
        await person.open(url)
        # A window that another test left behind may have the focus.
        await person.page.bring_to_front()
        yield person
    finally:
        await context.close()
