"""Letters are made from what is stored when they are sent."""

import pytest

from bot.store.outbox import Letter
from bot.workflows.outbox import CardNow
from bot.workflows.testusers.letters import Letters
from bot.workflows.testusers.moves import CARD, card_key
from tests.support.testusers import ABEL, ADA, ADAM, SURVEY, World, default_policy


@pytest.mark.parametrize("allows", [True, False])
async def test_a_card_addresses_who_asked_only_where_they_may_approve(database, clock, allows):
    world = World(database, clock, policy=default_policy(allow_self_approval=allows))
    request = await world.ask("add welcome +1", ADA)
    card = await Letters(world.setup).card(Letter(card_key(request.id), CARD, request.id))
    assert isinstance(card, CardNow)
    assert (f"<@{ADA}>" in str(card.message.slack_blocks)) is allows


async def test_a_card_addresses_the_approvers_of_its_flow_alone(database, clock):
    world = World(database, clock, policy=default_policy(flow_approvers={SURVEY: (ABEL,)}))
    addressed = {"survey": [ABEL], "welcome": [ADA, "S0APPROVERS", ADAM]}
    for flow, ids in addressed.items():
        request = await world.ask(f"add {flow} +1")
        card = await Letters(world.setup).card(Letter(card_key(request.id), CARD, request.id))
        assert isinstance(card, CardNow)
        shown = str(card.message.slack_blocks)
        for one in (ABEL, ADA, "S0APPROVERS", ADAM):
            is_named = f"<@{one}>" in shown or f"<!subteam^{one}>" in shown
            assert is_named is (one in ids)
