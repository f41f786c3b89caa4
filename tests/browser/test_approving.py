"""One person requests a test user, and another person approves the request."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from sandbox.flows import PRACTICE_FLOW
from sandbox.launch import Sandbox
from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW
from tests.browser.conftest import sandbox_with_bot
from tests.browser.looking import focused, violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox() -> AsyncIterator[Sandbox]:
    """Yield a new sandbox, because messages from other tests would change the message counts."""
    async with sandbox_with_bot() as running:
        yield running


async def test_the_first_minute_asks_and_a_second_person_approves(
    person: Person, sandbox: Sandbox
) -> None:
    page = person.page
    look = page.get_by_role("button", name="See who can test")
    await expect(look).to_have_attribute("aria-disabled", "true")
    await page.get_by_role("button", name="Ask for a test user").click()
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await expect(step(person, "Ask for a test user")).to_have_class("done")
    await page.get_by_role("button", name="Approve it as Ada").click()
    await expect(page.get_by_label("Acting as")).to_have_value("U0APPROVER")
    await expect(step(person, "Approve it as Ada")).not_to_have_class("done")
    todo = page.get_by_text("You are Ada now")
    await expect(todo).to_be_visible()
    await person.button("Approve").click()
    await expect(person.log).to_contain_text("approved by Ada Approver")
    await expect(todo).to_be_hidden()
    await expect(step(person, "Approve it as Ada")).to_have_class("done")
    assert "+15550142" in sandbox.services.state.flows[WELCOME_FLOW].identities
    await expect(person.newest.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await expect(look).not_to_have_attribute("aria-disabled", "true")
    await look.click()
    await expect(page.get_by_label("Acting as")).to_have_value("U0OPERATOR")
    await expect(person.newest).to_contain_text("+15550142")
    await expect(step(person, "See who can test")).to_have_class("done")
    direct = page.get_by_role("link", name="Gatehouse")
    await expect(direct).to_have_accessible_description("1 unread")
    tip = page.get_by_text("only Otto sees this reply")
    await expect(tip).to_be_visible()
    await person.go_to("Gatehouse")
    await expect(tip).to_be_hidden()
    await expect(person.newest).to_contain_text("Ada Approver")
    await page.get_by_role("button", name="Skip the wait").click()
    await expect(step(person, "Skip the wait")).to_have_class("done")
    assert "+15550142" in sandbox.services.state.flows[PRACTICE_FLOW].identities


def step(person: Person, title: str) -> Locator:
    """Return an item in the list of first steps. Completed items have the class `done`."""
    return person.page.get_by_role("listitem").filter(
        has=person.page.get_by_role("button", name=title)
    )


async def test_a_request_is_made_in_a_modal_with_errors_at_their_inputs(
    person: Person, sandbox: Sandbox
) -> None:
    await person.type("/testusers")
    modal = person.page.get_by_role("dialog", name="Test users")
    await modal.get_by_label("Flow").fill("sur")
    await modal.get_by_role("option", name="survey").click()
    await modal.get_by_label("Identities").fill("grace@example.com\nlin@example.com")
    await modal.get_by_label("For", exact=True).fill("tomorrow")
    await modal.get_by_role("button", name="Request").click()
    wrong = modal.get_by_label("For", exact=True)
    await expect(wrong).to_be_focused()
    await expect(wrong).to_have_attribute("aria-invalid", "true")
    await expect(wrong).to_have_accessible_description(re.compile("“tomorrow” as a duration"))
    assert await violations(person) == []
    await wrong.fill("2h")
    await modal.get_by_role("button", name="Request").click()
    await expect(modal).to_have_count(0)
    await expect(person.composer).to_be_focused()
    await person.act_as("Abel")
    await person.go_to("#approvals")
    await expect(person.log).to_contain_text("lin@example.com")
    await person.button("Approve").click()
    await expect(person.log).to_contain_text("Applied, approved by Abel Approver")
    identities = sandbox.services.state.flows[SURVEY_FLOW].identities
    assert identities[-2:] == ["grace@example.com", "lin@example.com"]


async def test_an_edit_behind_the_bots_back_is_seen(person: Person, sandbox: Sandbox) -> None:
    flow = sandbox.services.state.flows[WELCOME_FLOW]
    before = list(flow.history)
    panel = await person.services()
    await panel.get_by_label("Test users of welcome").fill(
        "\n".join([*flow.identities, "outside@example.com"])
    )
    await panel.get_by_role("button", name="Save welcome").click()
    await person.type("/testusers list welcome")
    await expect(person.newest).to_contain_text("outside@example.com")
    assert flow.history == before
    calls = panel.get_by_role("table")
    await expect(calls).to_contain_text("/v2/Flows/FW…/TestUsers")


async def test_the_whole_page_works_by_keyboard_alone(person: Person, sandbox: Sandbox) -> None:
    keyboard = person.page.keyboard
    await keyboard.type("/testusers")
    await keyboard.press("Enter")
    modal = person.page.get_by_role("dialog")
    await expect(modal.get_by_role("combobox", name="Flow")).to_be_focused()
    offered = modal.get_by_role("listbox").get_by_role("option")
    await expect(offered).to_have_count(0)
    await keyboard.press("ArrowDown")
    await expect(offered).to_have_count(3)
    await keyboard.type("surv")
    await expect(offered).to_have_count(1)
    await keyboard.press("ArrowDown")
    await keyboard.press("Enter")
    await keyboard.press("Tab")
    await keyboard.press("Tab")
    await keyboard.type("keys@example.com")
    while await focused(person) != "Request":
        await keyboard.press("Tab")
    await keyboard.press("Enter")
    await expect(modal).to_have_count(0)
    await person.page.get_by_label("Acting as").focus()
    await keyboard.type("Ada")
    await person.page.get_by_role("link", name="#approvals").focus()
    await keyboard.press("Enter")
    await expect(person.newest).to_contain_text("keys@example.com")
    await person.composer.focus()
    while await focused(person) != "Approve":
        await keyboard.press("Shift+Tab")
    await keyboard.press("Enter")
    flow = sandbox.services.state.flows[SURVEY_FLOW]
    await sandbox.services.state.until(lambda: "keys@example.com" in flow.identities)
