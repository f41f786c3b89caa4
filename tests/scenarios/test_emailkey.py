"""Tests `/emailkey` end to end, from the signed request to the bot's reply."""

import pytest
from aiohttp import web

from sandbox.services.faults import Fault, FaultKind
from tests.support.http import web_server
from tests.support.world import running_world


async def test_a_good_key_works(world):
    answer = await world.ask("U0VIEWER", "/emailkey", "check")
    assert "The email key works" in answer.all_text
    assert "GET /v3/templates" in answer.all_text
    assert "Bearer" in answer.all_text


async def test_templates_are_listed_by_name_and_id(world):
    answer = await world.ask("U0VIEWER", "/emailkey", "templates")
    assert "*3 templates*" in answer.all_text
    (table,) = [block for block in answer.blocks if block["type"] == "table"]
    assert [[cell["text"] for cell in row] for row in table["rows"]] == [
        ["Name", "ID"],
        ["Welcome & first steps", "d-0a1b2c3d4e5f"],
        ["Password reset", "d-1b2c3d4e5f60"],
        ["Invoice \u2039overdue\u203a", "d-2c3d4e5f6071"],
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"email_api_key": "SG.gone-key"}, "The email key was rejected"),
        ({"email_api_key": "SG.limited-key"}, "have permission for this"),
        ({"email_auth": "basic"}, "Basic, user apikey"),
        ({"email_base_url": "", "email_api_key": ""}, "set EMAIL_BASE_URL, EMAIL_API_KEY"),
    ],
)
async def test_each_state_of_the_key_has_its_words(sqlite_url, settings, says):
    async with running_world(sqlite_url, **settings) as world:
        answer = await world.ask("U0VIEWER", "/emailkey", "check")
    assert says in answer.all_text
    assert "SG." not in answer.all_text


@pytest.mark.parametrize(
    ("resource", "says"),
    [
        ("templates", "Give the key read access to “templates”"),
        ("resource", "The email key works"),
        ("nonsense", "doesn't have this resource"),
        ("templates resource", "A resource is a name"),
    ],
)
async def test_a_resource_is_tested(sqlite_url, resource, says):
    async with running_world(sqlite_url, email_api_key="SG.limited-key") as world:
        answer = await world.ask("U0VIEWER", "/emailkey", f"check {resource}")
    assert says in answer.all_text


async def test_check_that_a_passing_error_stops_can_be_tried_again(world):
    fault = Fault(FaultKind.STATUS, "email", status=503)
    world.services.state.faults.add(fault)
    answer = await world.ask("U0VIEWER", "/emailkey", "check")
    assert "is having problems" in answer.all_text
    assert answer.buttons == ["Try again"]
    fault.lift()
    await world.slack.click("U0VIEWER", answer, "Try again")
    await world.shows(answer, "The email key works")


async def test_help_and_nonsense_are_answered(world):
    assert "test the key" in (await world.ask("U0VIEWER", "/emailkey", "help")).all_text
    nonsense = await world.ask("U0VIEWER", "/emailkey", "frobnicate")
    assert "Usage" in nonsense.all_text
    assert "/emailkey check templates" in nonsense.all_text


async def test_a_mistyped_resource_does_not_change_the_status(world):
    await world.ask("U0VIEWER", "/emailkey", "check nonsense")
    status = await world.ask("U0VIEWER", "/gatehouse", "status")
    assert "rejected" not in status.all_text
    assert "Everything is working." in status.all_text


async def test_somebody_without_a_role_calls_no_service(world):
    answer = await world.ask("U0NOROLE", "/emailkey", "templates")
    assert "have access to Gatehouse yet" in answer.all_text
    assert world.services.state.calls == []


async def test_pages_are_turned_in_place(sqlite_url):
    async def many(_: web.Request) -> web.Response:
        named = [{"id": f"d-{n}", "name": f"Template {n}"} for n in range(45)]
        return web.json_response({"templates": named})

    async with web_server(many) as url, running_world(sqlite_url, email_base_url=url) as world:
        first = await world.ask("U0VIEWER", "/emailkey", "templates")
        assert "Template 19" in first.all_text
        assert "Template 20" not in first.all_text
        await world.slack.click("U0VIEWER", first, "Next")
        (second,) = await world.slack.until(
            lambda: [
                message
                for message in world.slack.workspace.ephemerals("U0VIEWER")
                if "Template 20" in message.all_text
            ]
        )
        assert "Template 19" not in second.all_text
        assert second.buttons == ["Previous", "Next"]
        assert len(world.slack.workspace.ephemerals("U0VIEWER")) == 1
