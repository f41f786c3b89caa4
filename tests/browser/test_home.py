"""People use the Home tab, shortcuts, and direct messages with the bot."""

import pytest
from playwright.async_api import Locator, expect

from sandbox.launch import Sandbox
from sandbox.services.state import WELCOME_FLOW
from tests.browser.looking import violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def home_of(person: Person) -> Locator:
    return person.page.get_by_role("region", name="Home")


async def fill_in(form: Locator, flow: str, identities: str) -> None:
    await form.get_by_label("Flow").fill(flow)
    await form.get_by_role("option", name=flow).click()
    await form.get_by_label("Identities").fill(identities)
    await form.get_by_role("button", name="Request").click()
    await expect(form).to_have_count(0)


async def test_a_newcomer_approves_in_four_clicks_and_a_form(
    person: Person, sandbox: Sandbox
) -> None:
    page = person.page
    # Home shows the ten oldest requests, and other tests leave some waiting.
    for left in sandbox.slack.workspace.messages("C0APPROVALS"):
        if "Cancel" in left.buttons:
            await sandbox.slack.click("U0ADMIN", left, "Approve")
            await sandbox.slack.click("U0APPROVER", left, "Approve")
            await sandbox.slack.until(lambda left=left: "Approve" not in left.buttons)
    await page.get_by_role("link", name="Home").click()
    await home_of(person).get_by_role("button", name="Change test users").click()
    await fill_in(page.get_by_role("dialog", name="Test users"), "welcome", "+15550188")
    await expect(home_of(person)).to_contain_text("Waiting for approval")
    await person.act_as("Ada")
    # The tab is drawn when it's opened.
    waiting = home_of(person).locator("[data-block]:has-text('+15550188') + [data-block]")
    approve = waiting.get_by_role("button", name="Approve")
    await approve.click()
    flow = sandbox.services.state.flows[WELCOME_FLOW]
    await sandbox.services.state.until(lambda: "+15550188" in flow.identities)
    await expect(approve).to_have_count(0)
    cards = sandbox.slack.workspace.messages("C0APPROVALS")
    (card,) = [card for card in cards if "+15550188" in card.all_text]
    await sandbox.slack.until(lambda: "Applied" in card.all_text)
    await person.act_as("Otto")
    await page.get_by_role("link", name="Home").click()
    await expect(home_of(person)).to_contain_text("approved by Ada Approver")


async def test_home_passes_axe(person: Person, sandbox: Sandbox) -> None:
    asked = "add survey axe@example.com"
    await sandbox.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", asked)
    await person.act_as("Ada")
    await person.page.get_by_role("link", name="Home").click()
    for scheme, width in (("dark", 1280), ("light", 375)):
        await person.page.emulate_media(color_scheme=scheme)
        await person.page.set_viewport_size({"width": width, "height": 800})
        approve = home_of(person).get_by_role("button", name="Approve")
        await expect(approve.first).to_be_visible()
        assert await violations(person) == []
        assert await person.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_cancel_on_home_asks_first(person: Person, sandbox: Sandbox) -> None:
    await sandbox.slack.command("U0ADMIN", "C0GENERAL", "/testusers", "add survey sure@example.com")
    await person.act_as("Adam")
    await person.page.get_by_role("link", name="Home").click()
    own = home_of(person).locator("[data-block]").filter(has_text="sure@example.com").last
    await own.get_by_role("button", name="Cancel").click()
    question = person.page.get_by_role("dialog", name="Cancel this request?")
    await expect(question).to_have_accessible_description(
        "This request will be withdrawn: add sure@example.com to survey."
    )
    assert await violations(person) == []
    # Meanwhile, the tab is drawn again.
    before = await own.element_handle()
    home = sandbox.slack.workspace.homes["U0ADMIN"]
    view = {"type": "home", "blocks": [*home.blocks, {"type": "divider"}]}
    sandbox.slack.workspace.publish("U0ADMIN", view)
    assert before is not None
    await before.wait_for_element_state("hidden")
    await person.page.keyboard.press("Escape")
    await expect(own.get_by_role("button", name="Cancel")).to_be_focused()
    await own.get_by_role("button", name="Cancel").click()
    await question.get_by_role("button", name="Cancel it").click()
    await expect(home_of(person)).to_contain_text("Cancelled")


async def test_global_shortcut_opens_the_form_by_keyboard(person: Person, sandbox: Sandbox) -> None:
    await person.page.get_by_role("button", name="Shortcuts").focus()
    await person.page.keyboard.press("ArrowDown")
    entry = person.page.get_by_role("menuitem", name="Change test users")
    await expect(entry).to_be_focused()
    assert await violations(person) == []
    await person.page.keyboard.press("Enter")
    form = person.page.get_by_role("dialog", name="Test users")
    await expect(form).to_be_visible()
    await fill_in(form, "survey", "shortcut@example.com")
    workspace = sandbox.slack.workspace
    card = await sandbox.slack.until(
        lambda: "shortcut@example.com" in workspace.messages("C0APPROVALS")[-1].all_text
    )
    assert card
