"""The page shows quotas, faulty services, and the effects of too many calls."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from sandbox.bot_process import BotProcess
from sandbox.launch import Sandbox
from tests.browser.conftest import fork, sandbox_with_bot
from tests.browser.looking import violations
from tests.browser.person import Person
from tests.support.forks import ForkedProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox() -> AsyncIterator[Sandbox]:
    """Yield a new sandbox, because blocked organizations would disturb other tests."""
    async with sandbox_with_bot() as running:
        yield running


async def test_a_quota_is_shown_with_a_chart(person: Person) -> None:
    await person.type("/orgs")
    await expect(person.newest.get_by_role("table")).to_be_visible()
    await person.type("/ratelimits check 20077314")
    await expect(person.newest).to_contain_text("succeeded")
    await person.type("/ratelimits 20077314")
    await expect(person.newest).to_contain_text("Müller & Söhne")
    await expect(person.newest).to_contain_text("1/100")
    chart = person.newest.get_by_role("figure").last
    await expect(chart.get_by_role("img")).to_be_visible()
    await chart.get_by_text("Numbers").click()
    await expect(chart.get_by_role("table")).to_be_visible()
    assert await violations(person) == []


async def test_an_alert_opens_and_clears(person: Person, sandbox: Sandbox) -> None:
    page = person.page
    await page.get_by_role("button", name="Block an organization").click()
    panel = page.get_by_role("complementary", name="Services")
    lift = panel.get_by_role("button", name="Unblock 🌵 Cactus & Co")
    await expect(lift).to_be_visible()
    await expect(person.log).to_contain_text("is blocked, because the limit of")
    await expect(person.button("Check now")).to_be_visible()
    await expect(person.log).not_to_contain_text("Cleared")
    assert await violations(person) == []
    await lift.click()
    await expect(person.log).to_contain_text("Cleared")
    await expect(person.button("Check now")).to_have_count(0)
    await person.log.get_by_role("button", name="1 reply").click()
    thread = page.get_by_role("complementary", name="Thread")
    await expect(thread.get_by_role("article").last).to_contain_text("Cleared")
    [card] = sandbox.slack.workspace.messages("C0ALERTS")
    assert card.is_edited


async def test_a_broken_data_center_is_named_and_its_last_listing_shown(person: Person) -> None:
    await person.type("/orgs")
    await expect(person.newest).to_contain_text("Page 1 of 2")
    panel = await person.services()
    await panel.get_by_label("com.au").select_option("reset")
    await expect(panel.get_by_label("com.au")).to_have_class("troubled")
    # A listing that is less than five seconds old is not fetched again.
    while "is out of date" not in await person.newest.inner_text():
        await person.type("/orgs refresh")
        await expect(person.newest).to_contain_text("19 organizations")
    await expect(person.newest).to_contain_text("closed the connection early")
    await expect(person.newest).to_contain_text("com.au is out of date")
    await expect(person.newest.get_by_role("table")).to_contain_text("Southern Cross")
    await panel.get_by_label("com.au").select_option("")
    await expect(panel.get_by_label("com.au")).not_to_have_class("troubled")


def got(way: Locator, what: str) -> Locator:
    """Find the number that is displayed next to a label."""
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
    await expect(refused).to_have_text(re.compile(r"^\d+ \(code 44: \d+\)$"))
    await way.get_by_role("button", name="Stop").click()
    await expect(got(way, "Passed")).to_have_text(re.compile(r"^(9\d|100)$"))
    assert await violations(person) == []
    await person.go_to("#alerts")
    await person.type(f"/ratelimits check {await organization_of(way)}")
    alert = person.log.get_by_role("article").filter(has_text="is blocked")
    await expect(alert.first).to_contain_text("another client")


async def test_calls_of_the_script_wait_at_the_gateway(person: Person, sandbox: Sandbox) -> None:
    panel = await person.services()
    way = panel.get_by_role("group", name="Run through the gateway")
    organization = way.get_by_label("Organization")
    await expect(organization.locator("option").first).to_be_attached()
    # The test above has blocked the first organization for longer than a call may wait.
    await organization.select_option(index=1)
    data_center, organization_id = (await organization.input_value()).split(" ")
    sandbox.services.state.limits.block((data_center, organization_id), 44)
    # The guard knows of the block before the script calls, so none of the calls is refused.
    await person.type(f"/ratelimits check {organization_id}")
    await expect(person.newest).to_contain_text("blocked")
    await way.get_by_role("button", name="Run through the gateway").click()
    await expect(got(way, "Waiting")).to_have_text(re.compile("^[123]$"))
    await way.get_by_role("button", name="Stop").click()
    await expect(got(way, "Waiting")).to_have_text("0")


async def test_a_change_fails_while_the_flow_service_is_broken(person: Person) -> None:
    panel = await person.services()
    flow = panel.get_by_label("flow", exact=True)
    await flow.select_option("401")
    await expect(flow).to_have_class("troubled")
    await flow.select_option("")
    await expect(flow).not_to_have_class("troubled")
    await person.type("/testusers add survey retry@example.com for 2h because a demo")
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await person.act_as("Ada")
    await person.go_to("#approvals")
    card = person.log.get_by_role("article").filter(has_text="retry@example.com").first
    await flow.select_option("401")
    await expect(flow).to_have_class("troubled")
    await card.get_by_role("button", name="Approve").click()
    await expect(card).to_contain_text("Failed")
    await flow.select_option("")
    await expect(flow).not_to_have_class("troubled")
    await card.get_by_role("button", name="Retry", exact=True).click()
    await person.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    await expect(card).to_contain_text("Applied")


async def test_a_command_during_a_restart_is_delivered_afterwards(
    person: Person, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_start = asyncio.Event()

    async def forked_later(bot: BotProcess) -> ForkedProcess:
        await may_start.wait()
        return await fork(bot)

    # A forked bot is ready so soon that a busy browser might never show the notice.
    monkeypatch.setattr(BotProcess, "_spawn", forked_later)
    panel = await person.services()
    await panel.get_by_role("button", name="Restart the bot").press("Enter")
    notice = person.page.get_by_role("alert")
    await expect(notice).to_contain_text("Gatehouse is restarting")
    await person.type("/gatehouse whoami")
    may_start.set()
    await expect(person.newest).to_contain_text("operator")
    await expect(notice).to_be_hidden()
    said = [message.text for message in sandbox.slack.workspace.all_messages]
    assert not any("dispatch_failed" in text for text in said)
