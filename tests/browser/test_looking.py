"""The page shows lists, private messages, times, threads and colors, even on small screens."""

import os
import signal

import pytest
from playwright.async_api import Browser, expect

from sandbox.launch import Sandbox
from tests.browser.person import Person, person_at

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_commands_are_completed_with_their_hints(person: Person) -> None:
    await person.composer.fill("/te")
    offered = person.page.get_by_role("listbox", name="Commands").get_by_role("option")
    await expect(offered).to_have_count(1)
    await expect(offered).to_contain_text("/testusers")
    await person.composer.press("Tab")
    await expect(person.composer).to_have_value("/testusers ")
    await person.composer.press("ArrowDown")
    await person.composer.press("Enter")
    await expect(person.composer).to_have_value("/testusers list ")


async def test_a_thread_opens_beside_the_channel(person: Person) -> None:
    await person.type("something to talk about")
    await expect(person.newest).to_contain_text("something to talk about")
    await person.newest.hover()
    await person.newest.get_by_role("button", name="Reply in thread").click()
    thread = person.page.get_by_role("complementary", name="Thread")
    await thread.get_by_role("textbox", name="Reply").fill("I think so too")
    await thread.get_by_role("textbox", name="Reply").press("Enter")
    await expect(thread).to_contain_text("I think so too")
    await expect(person.newest.get_by_role("button", name="1 reply")).to_be_visible()
    await person.page.keyboard.press("Escape")
    await expect(thread).to_have_count(0)


async def test_times_are_in_the_zone_of_the_person(browser: Browser, sandbox: Sandbox) -> None:
    said = sandbox.slack.say("U0ADMIN", "C0GENERAL", "at noon")
    said.text = "<!date^1767297600^{date_num} {time}|eight in the evening>"
    sandbox.slack.workspace.edit(said, said.text, [])
    there = {"Vera": "2026-01-02 5:00 AM", "Abel": "2026-01-01 3:00 PM"}
    async with person_at(browser, sandbox.url, timezone_id="UTC", locale="en-US") as someone:
        for name, hour in there.items():
            await someone.act_as(name)
            await expect(someone.log.get_by_text(hour)).to_be_visible()


async def test_a_small_screen_has_everything(browser: Browser, sandbox: Sandbox) -> None:
    size = {"width": 375, "height": 780}
    async with person_at(browser, sandbox.url, viewport=size, has_touch=True) as someone:
        await someone.act_as("Ada")
        menu = someone.page.get_by_role("button", name="Show the workspace")
        for _ in range(2):
            await menu.click()
            await someone.go_to("#approvals")
            await expect(menu).to_have_attribute("aria-expanded", "false")
        await someone.type("/orgs")
        await expect(someone.newest.get_by_role("table")).to_be_visible()
        wide = await someone.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size["width"]


async def test_a_bot_that_dies_is_shown_and_can_be_started_again(
    person: Person, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sandbox.bot.pid is not None
    os.kill(sandbox.bot.pid, signal.SIGKILL)
    trouble = person.page.get_by_role("alert")
    await expect(trouble).to_contain_text("Gatehouse has stopped")
    assert "The bot has stopped (exit -9)" in capsys.readouterr().err
    await trouble.get_by_role("button", name="Start it").click()
    await expect(person.page.get_by_text("Gatehouse is running")).to_be_visible()
    await expect(trouble).to_have_count(0)
    await person.type("/gatehouse whoami")
    await expect(person.newest).to_contain_text("operator")
