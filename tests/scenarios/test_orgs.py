"""`/orgs`, from the signed request to what the person sees."""

import asyncio

import pytest

from tests.support.world import running_world


@pytest.fixture
async def world(sqlite_url):
    async with running_world(sqlite_url, inventory_watch="off") as world:
        yield world


async def test_a_viewer_sees_the_organizations_of_all_data_centers(world):
    answer = await world.ask("U0VIEWER", "/orgs")
    assert "in 8 data centers" in answer.all_text


async def test_somebody_without_a_role_gets_a_sentence_and_no_data(world):
    answer = await world.ask("U0NOROLE", "/orgs")
    assert "You may not" in answer.all_text
    assert "Vera Viewer (U0VIEWER)" in answer.all_text
    assert world.services.state.calls == []


async def test_fifty_people_at_once_cost_one_call_a_data_center(world):
    await asyncio.gather(
        *(world.slack.command("U0VIEWER", "C0GENERAL", "/orgs", "") for _ in range(25)),
        *(world.slack.command("U0OPERATOR", "C0GENERAL", "/orgs", "") for _ in range(25)),
    )
    ephemerals = world.slack.workspace.ephemerals
    await world.slack.until(
        lambda: len(ephemerals("U0VIEWER")) + len(ephemerals("U0OPERATOR")) == 50,
        timeout=20,
    )
    called = [call.data_center for call in world.services.state.calls]
    assert sorted(called) == sorted(set(called))
    assert len(called) == 8
