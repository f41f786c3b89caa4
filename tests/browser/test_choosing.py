"""The page works even if a person types faster than the bot responds."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from sandbox.services.state import SURVEY_FLOW
from tests.browser.looking import violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_name_typed_and_entered_at_once_is_the_one_that_is_chosen(person: Person) -> None:
    await person.type("/testusers")
    modal = person.page.get_by_role("dialog", name="Test users")
    flow = modal.get_by_role("combobox", name="Flow")
    await modal.get_by_role("combobox", name="Flow").click()
    await expect(modal.get_by_role("listbox").get_by_role("option")).to_have_count(3)
    # One of these two names is not the first in the old list.
    for name in ("welcome", "survey"):
        await flow.fill(name)
        async with person.page.expect_response("**/page/suggest"):
            await flow.press("Enter")
        await expect(flow).to_have_value(re.compile(rf"{name} \(FW"))
        await expect(modal.get_by_role("listbox")).to_have_count(0)
        await expect(modal).to_be_visible()
    await modal.get_by_label("Identities").fill("quick@example.com")
    await modal.get_by_role("button", name="Request").click()
    await expect(modal).to_have_count(0)
    await expect(person.newest).to_contain_text("survey")


async def test_a_word_of_the_form_is_taken_in_quotation_marks(person: Person) -> None:
    await person.type("/testusers")
    modal = person.page.get_by_role("dialog", name="Test users")
    flow = modal.get_by_role("combobox", name="Flow")
    await flow.click()
    await modal.get_by_role("option", name="survey").click()
    identities = modal.get_by_label("Identities")
    await identities.fill("John Smith")
    await modal.get_by_label("Reason").fill("a demo")
    await modal.get_by_role("button", name="Request").click()
    await expect(modal).to_contain_text("“John Smith” doesn't look like a phone number")
    assert await violations(person) == []
    await identities.fill('"John Smith"')
    await modal.get_by_role("button", name="Request").click()
    await expect(modal).to_have_count(0)
    await expect(person.newest).to_contain_text("John Smith")


async def test_pasted_flow_is_taken_though_its_answer_comes_late(
    person: Person,
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        asked.set()
        await answer.wait()
        await route.continue_()

    await person.type("/testusers")
    modal = person.page.get_by_role("dialog", name="Test users")
    await modal.get_by_role("combobox", name="Flow").click()
    await expect(modal.get_by_role("listbox").get_by_role("option")).to_have_count(3)
    await person.page.route("**/page/suggest", late)
    flow = modal.get_by_role("combobox", name="Flow")
    await flow.fill(SURVEY_FLOW)
    await flow.press("Tab")
    await modal.get_by_label("Identities").fill("pasted@example.com")
    await modal.get_by_role("button", name="Request").click()
    await asked.wait()
    answer.set()
    await expect(modal).to_have_count(0)
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await person.page.unroute_all(behavior="wait")
