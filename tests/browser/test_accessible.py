"""The page works for people who use only a keyboard or a screen reader."""

import pytest
from playwright.async_api import expect

from tests.browser.looking import focused, violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_list_and_the_services_pass_axe(person: Person) -> None:
    await person.type("/orgs")
    await expect(person.newest.get_by_role("table")).to_be_visible()
    panel = await person.services()
    await expect(panel.get_by_role("button", name="Save welcome")).to_be_visible()
    assert await violations(person) == []
    await person.page.emulate_media(color_scheme="dark")
    assert await violations(person) == []


async def test_a_small_screen_passes_axe(person: Person) -> None:
    await person.page.set_viewport_size({"width": 390, "height": 780})
    await person.page.get_by_role("button", name="Show the workspace").click()
    await expect(person.page.get_by_label("Acting as")).to_be_visible()
    assert await violations(person) == []


async def test_a_list_is_asked_for_and_turned_by_keyboard_alone(person: Person) -> None:
    keyboard = person.page.keyboard
    await expect(person.composer).to_be_focused()
    await keyboard.type("/or")
    await keyboard.press("ArrowDown")
    await keyboard.press("Enter")
    await expect(person.composer).to_have_value("/orgs ")
    before = await person.log.get_by_role("article").count()
    await keyboard.press("Enter")
    # Other tests may have left a list in the channel.
    await expect(person.log.get_by_role("article")).to_have_count(before + 1)
    await expect(person.newest).to_contain_text("Page 1 of 2")
    while await focused(person) != "Next":
        await keyboard.press("Shift+Tab")
    await keyboard.press("Enter")
    await expect(person.newest).to_contain_text("Page 2 of 2")
    assert await person.newest.evaluate("node => node.contains(document.activeElement)")


async def test_completions_are_announced_when_they_open(person: Person) -> None:
    hint = person.page.get_by_role("status").filter(has_text="choose with the arrow keys")
    await expect(person.composer).to_have_attribute("aria-haspopup", "listbox")
    await person.composer.press_sequentially("/")
    await expect(hint).to_have_text("5 commands, choose with the arrow keys")
    await expect(person.composer).to_have_accessible_description(
        "5 commands, choose with the arrow keys"
    )
    assert await violations(person) == []
    await person.composer.press_sequentially("or")
    await expect(hint).to_have_text("1 command, choose with the arrow keys")
    await person.composer.press("Escape")
    await expect(hint).to_have_count(0)


async def test_another_person_and_channel_are_chosen_by_keyboard_alone(person: Person) -> None:
    keyboard = person.page.keyboard
    await person.page.get_by_label("Acting as").focus()
    await keyboard.type("Ada")
    await keyboard.press("Tab")
    await keyboard.press("Tab")
    await keyboard.press("Enter")
    await expect(person.page.get_by_role("heading", level=1)).to_have_text("#approvals")
    await expect(person.page.get_by_label("Acting as")).to_have_value("U0APPROVER")
