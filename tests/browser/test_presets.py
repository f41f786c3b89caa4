"""A preset, asked for from tomorrow, approved, and cancelled before it starts."""

import pytest
from playwright.async_api import expect

from sandbox.launch import Sandbox
from sandbox.services.state import WELCOME_FLOW
from tests.browser.person import Person
from tests.browser.test_home import home_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_preset_for_tomorrow_is_approved_seen_on_home_and_cancelled(
    person: Person, sandbox: Sandbox
) -> None:
    flow = sandbox.services.state.flows[WELCOME_FLOW]
    before = list(flow.identities)
    await person.type("/testusers preset save demo +15550191 lin@example.com")
    await expect(person.newest).to_contain_text("demo")
    await person.type("/testusers add welcome @demo from tomorrow 9:00 because Friday demo")
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await person.act_as("Ada")
    await person.go_to("#approvals")
    await expect(person.newest).to_contain_text("+15550191")
    await expect(person.newest).to_contain_text("tomorrow")
    await person.button("Approve").click()
    await expect(person.log.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await person.act_as("Otto")
    await person.page.get_by_role("link", name="Home").click()
    own = home_of(person).locator("[data-block]").filter(has_text="+15550191").last
    await expect(own).to_contain_text("starts")
    assert flow.identities == before
    await own.get_by_role("button", name="Cancel").click()
    await person.page.get_by_role("dialog").get_by_role("button", name="Cancel it").click()
    await expect(own).to_contain_text("Cancelled")
    assert flow.identities == before
