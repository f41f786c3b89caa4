"""Test that `/ratelimits`, alerts, `status` and `check` name both clients and people."""

from types import SimpleNamespace

import pytest
from aiohttp import web

from bot.checks import checks
from bot.organizations.rules import OrganizationKey
from bot.services.calls import CallCause
from bot.services.errors import RateLimited
from tests.gateway.conftest import EU, gateway_clients
from tests.gateway.test_declining import ITEMS, refusing, use_up
from tests.support.settings import LEAST, read_settings

LISTING = {"code": 0, "organizations": [{"organization_id": EU, "name": "Bergmann"}]}


async def listing(_request, _body):
    return web.json_response(LISTING)


async def test_alert_says_how_much_each_client_used(gateway):
    await use_up(gateway, 3, "nightly")
    gateway.upstream.answer = refusing(44)
    await gateway.status(ITEMS)
    slack = gateway.world.slack
    card = await slack.until(lambda: next(iter(slack.workspace.messages("C0ALERTS")), None))
    assert "nightly 3 per minute, 3 per day" in card.all_text
    assert "script 1 per minute, 1 per day" in card.all_text
    assert "another client" in card.all_text


@pytest.mark.slow
async def test_alert_blames_nobody_else_for_what_clients_used(gateway):
    await use_up(gateway, 80, "nightly")
    guard = gateway.world.bot.inventory.gateway.forwarder.turns.guard
    for number in range(20):
        async with guard.call(OrganizationKey("eu", EU), CallCause("check", "U1")) as grant:
            await grant.responded()
            if number == 19:
                await grant.refused(RateLimited("inventory", "Declined.", code=44))
    slack = gateway.world.slack
    card = await slack.until(lambda: next(iter(slack.workspace.messages("C0ALERTS")), None))
    assert "another client" not in card.all_text
    assert "nightly 80 per minute" in card.all_text


async def test_ratelimits_names_clients_beside_people(gateway):
    gateway.upstream.answer = listing
    await use_up(gateway, 2, "nightly")
    await gateway.world.ask("U0OPERATOR", "/orgs", "refresh")
    answer = await gateway.world.ask("U0OPERATOR", "/ratelimits", f"eu/{EU}")
    assert "`nightly` (gateway) 2" in answer.all_text
    assert "gateway 2" in answer.all_text


async def test_metrics_tell_of_the_gateway(gateway):
    await use_up(gateway, 2)
    page = gateway.world.bot.metrics.page().decode()
    labels = 'client="script",data_center="eu",outcome="ok"'
    assert f"gatehouse_gateway_requests_total{{{labels}}} 2.0" in page
    assert 'gatehouse_gateway_wait_seconds_count{client="script"} 2.0' in page


def settings_of(**changed):
    usual = {
        "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "xyz", "base_url": "https://eu.example/v1"}}',
        "GATEWAY_PORT": "3001",
        "GATEWAY_CLIENTS": gateway_clients(),
    }
    return read_settings({**LEAST, **usual, **changed})


async def check_gateway(settings, **listed):
    return await checks.gateway(SimpleNamespace(settings=settings, listed=listed))


async def test_check_is_silent_where_there_is_no_gateway():
    assert await check_gateway(settings_of(GATEWAY_PORT="", GATEWAY_CLIENTS="")) == []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, "ok"),
        ({"GATEWAY_PORT": ""}, "half_configured"),
        ({"GATEWAY_CLIENTS": ""}, "half_configured"),
    ],
)
async def test_check_names_half_a_gateway(changed, code):
    (finding,) = await check_gateway(settings_of(**changed))
    assert finding.code == code


async def test_check_names_an_organization_that_is_not_listed():
    (finding,) = await check_gateway(settings_of(), eu=[SimpleNamespace(organization_id="1")])
    assert finding.code == "organization_not_listed"
    assert "(nightly)" in finding.sentence
    assert "(script)" not in finding.sentence
