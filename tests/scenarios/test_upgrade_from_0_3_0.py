"""After an upgrade from version 0.3.0, old requests can still be approved, retried or undone."""

import pytest
from sqlalchemy import text

from bot.approvals.rules import Act, State
from bot.slack.messages import ids
from bot.testusers import store
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack
from tests.support import revision_0020
from tests.support.world import ADA, OTTO, SURVEY, VERA, WELCOME, World, running_world

OUTSIDE = "+15550100001"
PENDING, PLANNED, SCHEDULED, OVER, FAILED, HALF, ENDED, APPLIED, APPLYING = (
    f"+1555000{number}" for number in range(1, 10)
)
REST = "+15550016"


def undo_button(request_id: str) -> dict[str, object]:
    label = {"type": "plain_text", "text": "Undo"}
    action = f"{ids.TESTUSERS_ACT}{Act.UNDO}"
    return {"type": "button", "action_id": action, "text": label, "value": request_id}


@pytest.fixture
async def cards() -> dict[str, Message]:
    return {}


@pytest.fixture
async def world(empty_database_url, cards):
    async def prepare(slack: RunningSlack) -> None:
        await revision_0020.write(empty_database_url)
        for user, key in (await revision_0020.cards(empty_database_url)).items():
            workspace = slack.workspace
            post = Message("C0APPROVALS", workspace.next_ts(), workspace.bot_user_id, "as it was")
            post.blocks = [{"type": "actions", "elements": [undo_button(key.partition(":")[2])]}]
            cards[user] = workspace.post(post)
            await revision_0020.move_card(empty_database_url, key, post.ts)

    services = ServicesState()
    services.edit_flow(WELCOME, [OUTSIDE, ENDED, APPLIED])
    services.edit_flow(SURVEY, [HALF])
    settings = {"inventory_watch": "off", "services": services, "prepare": prepare}
    async with running_world(empty_database_url, **settings) as world:
        yield world


async def stored(world: World, user: str):
    async with world.bot.database.read_only() as tx:
        for request in await store.requests_in(tx, *State):
            if user in {person.identity for person in request.people}:
                return request
    raise LookupError(user)


async def test_nothing_that_was_approved_for_later_is_applied(world, cards):
    for user in (PLANNED, SCHEDULED):
        waits = "This change is no longer scheduled for 05 January 2099 09:00 UTC. It will be"
        await world.shows(cards[user], "*Needs approval again*", waits)
        assert cards[user].buttons == ["Approve", "Deny", "Cancel"]
    await world.shows(
        cards[OVER], "*Expired* because the requested access would already have ended"
    )
    await world.told(OTTO, "*Needs approval again*")
    request = await stored(world, SCHEDULED)
    assert (request.state, request.round.approvals) == (State.PENDING, ())
    assert (await stored(world, OVER)).state is State.EXPIRED
    await world.slack.until(lambda: APPLYING in world.services.state.flows[SURVEY].identities)
    assert SCHEDULED not in world.flow.identities


async def test_every_request_can_be_decided_retried_or_undone(world, cards):
    for user in (PENDING, SCHEDULED):
        await world.shows(cards[user], "Approvers:")
        await world.approve(cards[user], "*Applied*")
    await world.shows(cards[SCHEDULED], "to *welcome* until <!date^4071459600^")
    await world.click(OTTO, cards[PLANNED], "Cancel")
    for user in (FAILED, HALF):
        # The cards of old failures are brought up to date when somebody clicks on them.
        await world.click(OTTO, cards[user], "Undo")
        await world.shows(cards[user], "Failed")
        await world.click(ADA, cards[user], "Retry")
        await world.shows(cards[user], "*Applied*")
    survey = world.services.state.flows[SURVEY]
    assert {HALF, REST, FAILED}.issubset(survey.identities)
    said = (await world.click(OTTO, cards[APPLIED], "Undo")).all_text
    assert "Nothing was applied. The button was from an older version of Gatehouse." in said
    for user in (APPLIED, HALF):
        await world.shows(cards[user], "*Applied*")
        number = len(world.cards())
        await world.click(OTTO, cards[user], "Undo")
        await world.approve(await world.card(number), "*Applied*")
    assert not {HALF, REST}.intersection(survey.identities)
    await world.slack.until(lambda: set(world.flow.identities) == {OUTSIDE, PENDING, SCHEDULED})


async def test_access_ends_and_what_was_saved_is_kept(world, cards):
    await world.shows(cards[ENDED], f"*Access ended:* `{ENDED}`")
    assert ENDED not in world.flow.identities
    assert APPLIED in (await world.ask(OTTO, "/testusers", "list welcome")).all_text
    assert "@demo" in (await world.ask(VERA, "/testusers", "presets")).all_text
    await world.click(OTTO, cards[HALF], "Undo")
    await world.shows(cards[HALF], "Failed: only part of the change was made")
    async with world.bot.database.read_only() as tx:
        still_open = await tx.connection.scalar(text("SELECT count(*) FROM incidents"))
    assert still_open == 1
