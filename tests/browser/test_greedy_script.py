"""The greedy script of the panel, with and without the gateway."""

import re

import pytest
from playwright.async_api import Locator, expect

from sandbox.launch import Sandbox
from tests.browser.looking import violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def got(way: Locator, what: str) -> Locator:
    """The number beside one of the words of a result."""
    return way.locator(f"dt:text-is('{what}') + dd")


async def organization_of(way: Locator) -> str:
    value = await way.get_by_label("Organization").input_value()
    return value.split(" ")[1]


async def test_direct_script_is_blocked_and_alert_names_another_client(
    person: Person, sandbox: Sandbox
) -> None:
    panel = await person.services()
    way = panel.get_by_role("group", name="Run directly")
    await expect(way.get_by_label("Organization").locator("option").first).to_be_attached()
    await way.get_by_role("button", name="Run directly").click()
    refused = got(way, "Refused by the service")
    await expect(refused).to_have_text(re.compile(r"^\d+ \(44: \d+\)$"))
    await way.get_by_role("button", name="Stop").click()
    await expect(got(way, "Passed")).to_have_text("100")
    assert await violations(person) == []
    await person.go_to("#alerts")
    await person.type(f"/ratelimits check {await organization_of(way)}")
    alert = person.log.get_by_role("article").filter(has_text="is blocked")
    await expect(alert.first).to_contain_text("another client")
