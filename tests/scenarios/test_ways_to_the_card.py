"""The bot either refuses an identity or passes it on unchanged to the card and the service."""

import random
from collections.abc import Awaitable, Callable

import pytest

from bot.approvals.rules import State
from bot.testusers import store
from bot.testusers.messages.phrases import in_full
from tests.support.testusers import wanted
from tests.support.world import OTTO, World

LETTERS = "abcXYZ019_.*~`-+&"
DECORATIONS = (
    "{}",
    "{}",
    "*{}*",
    "_{}_",
    "~{}~",
    "`{}`",
    "({})",
    "{}.",
    '"{}"',
    "\u200b{}",
    "*_{}_*",
)
ROUNDS = 10


def any_identity(chance: random.Random) -> str:
    word = "".join(chance.choices(LETTERS, k=chance.randint(3, 12))) + chance.choice("a9_*~`-+&")
    local = "".join(chance.choices("abc019_.'+-", k=6))
    number = "".join(chance.choices("0123456789", k=10))
    return chance.choice((f"+{number}", f"chat:{word}", f"whatsapp:+{number}", f"a{local}b@x.test"))


async def said(world: World, user: str, text: str) -> str:
    return (await world.ask(user, "/testusers", text)).all_text


async def command(world: World, typed: str) -> str:
    return await said(world, OTTO, f"add welcome {typed}")


async def preset(world: World, typed: str) -> str:
    saved = await said(world, OTTO, f"preset save team {typed}")
    return await said(world, OTTO, "add welcome @team") if "Saved" in saved else saved


async def direct_message(world: World, typed: str) -> str:
    def answers() -> list[str]:
        said = [item.text for item in world.slack.workspace.dm(OTTO) if item.user != OTTO]
        return [text for text in said if "Sent to" in text or "quotes" in text]

    before = len(answers())
    await world.slack.direct_message(OTTO, f"testusers add welcome {typed}")
    return (await world.slack.until(lambda: answers()[before:]))[0]


async def submitted(world: World, filled: dict[str, str]) -> str:
    view = await world.form()
    before = len(world.slack.workspace.ephemerals(OTTO))
    await world.slack.submit(OTTO, view, {"Flow": "welcome", **filled})
    if view.errors:
        world.slack.workspace.close(view)
        return str(view.errors)
    return (await world.answer(OTTO, after=before)).all_text


async def form(world: World, typed: str) -> str:
    await world.opened_form()
    return await submitted(world, {"Identities": typed})


WAYS: tuple[Callable[[World, str], Awaitable[str]], ...] = (
    command,
    direct_message,
    form,
    preset,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_typed_identity_reaches_card_and_service_unchanged(world, way):
    chance = random.Random(way.__name__)
    sent = 0
    for _ in range(ROUNDS):
        identity, decoration = any_identity(chance), chance.choice(DECORATIONS)
        answer = await way(world, decoration.format(identity))
        if "Sent to" not in answer:
            continue
        async with world.bot.database.read_only() as tx:
            (request,) = await store.requests_in(tx, State.PENDING)
        (asked,) = wanted(request).additions
        assert asked in {identity, decoration.format(identity).strip("\u200b")}
        card = await world.card(sent)
        assert in_full(asked) in card.all_text
        sent += 1
        listed = [*world.flow.identities]
        await world.approve(card, "*Applied*")
        assert world.flow.identities == [*listed, asked]
    assert sent
