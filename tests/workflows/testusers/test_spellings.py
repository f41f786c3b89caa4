"""Who stands on the list with marks that nobody sees can be removed, extended and undone."""

import pytest

from bot.testusers import asking
from bot.testusers.parse.command import parse_testusers
from bot.testusers.rules.changes import Change
from tests.support.testusers import OTTO, WELCOME, World

MARKED, OTHER = "\u202a+15550100\u202c", "\u200e+15550100"
COMPOSED, DECOMPOSED = "caf\u00e9@b.c", "cafe\u0301@b.c"


async def asked(world: World, text: str):
    return await asking.ask(world, await world.person(OTTO), parse_testusers(text))


@pytest.mark.parametrize(
    ("listed", "typed"),
    [
        (MARKED, "+15550100"),
        (MARKED, OTHER),
        (DECOMPOSED, COMPOSED),
        ("+1-555\u20110100", '"+1-555-0100"'),
    ],
)
async def test_who_is_listed_in_another_spelling_can_be_removed(world, listed, typed):
    world.service.lists[WELCOME] = ["x", listed, "\u200ey"]
    request = await world.applied(f"remove welcome {typed}")
    assert request.requested.change == Change(removals=(listed,))
    assert world.service.lists[WELCOME] == ["x", "\u200ey"]


async def test_who_is_listed_in_another_spelling_is_not_added_again(world):
    world.service.lists[WELCOME] = [MARKED]
    result = await asked(world, "add welcome +15550100 +2")
    assert result.effect.dropped == Change((MARKED,))
    assert result.request.requested.change == Change(("+2",))
    assert (await asked(world, "add welcome +15550100")).request is None
