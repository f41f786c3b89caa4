"""Tests direct messages and shortcuts end to end, from the signed request to the bot's reply."""

import pytest

from bot.errors import DatabaseUnavailable
from tests.support.world import ADA, NORA, OTTO, VERA, running_world


def answers(world, user: str) -> list[str]:
    said = world.slack.workspace.dm(user)
    return [item.all_text for item in said if item.user != user and "Working" not in item.text]


async def answer(world, user: str, text: str) -> str:
    before = len(answers(world, user))
    delivery = await world.slack.direct_message(user, text)
    assert (delivery.status, delivery.error) == (200, None)
    return (await world.slack.until(lambda: answers(world, user)[before:]))[0]


async def settled(world) -> None:
    """Wait until all replies are complete."""
    await world.bot.tasks.drain(10)


async def test_text_is_a_command_without_its_slash(world):
    for text, words in (
        ("orgs show 10234695", "10234695"),
        ("/orgs show 10234695", "10234695"),
        ("ORGS show 10234695", "10234695"),
        ("`orgs show 10234695`", "10234695"),
        ("gatehouse whoami", "Vera Viewer"),
        ("orgs", "organizations"),
        ("testusers lst", "/testusers"),
        ("orgs show 10234695.", "10234695"),
    ):
        assert words in await answer(world, VERA, text)


async def test_anything_else_is_answered_with_what_the_person_can_do(world):
    for text in ("good grief", "🙂", "help", "hi", "add welcome +15550142", "approve", "or"):
        said = await answer(world, VERA, text)
        assert "You can send me these commands, with or without the slash" in said
        assert "Most used: `/testusers list &lt;flow&gt; [&lt;text&gt;]`, `/ratelimits" in said
        assert "/orgs show" in said


async def test_formatting_never_makes_another_command(world):
    world.flow.identities[:] = ["chat:ada", "chat:ada_"]
    for text in ("testusers remove welcome chat:ada_", "`testusers remove welcome chat:ada_`"):
        said = await answer(world, OTTO, text)
        assert "remove `chat:ada_`" in said
    said = await answer(world, OTTO, "_testusers remove welcome chat:ada_")
    assert "I don't know the command" in said
    assert world.slack.workspace.dm(OTTO)[-1].buttons == ["/testusers remove welcome chat:ada_"]


@pytest.mark.parametrize(
    "text",
    [
        "*testusers add welcome <mailto:ada@example.com|ada@example.com>*",
        "*_testusers add welcome <mailto:ada@example.com|ada@example.com>_*",
        "*<@U0GATEHOUSE>* testusers add welcome ada@example.com",
        "*<@U0GATEHOUSE|gatehouse>:* _testusers_ add welcome ada@example.com",
    ],
)
async def test_formatting_around_markup_and_mentions_is_no_part_of_a_command(world, text):
    event = {
        "type": "message",
        "channel": world.slack.workspace.direct(OTTO).id,
        "channel_type": "im",
        "user": OTTO,
        "text": text,
        "ts": "1.000001",
    }
    await world.slack.event(OTTO, event)
    (said,) = await world.slack.until(lambda: answers(world, OTTO))
    assert "add `ada@example.com` to *welcome*" in said


async def test_first_word_that_is_nearly_a_command_is_offered(world):
    for text, offered in (
        ("limits", ["/ratelimits"]),
        ("org show 10234695", ["/orgs show 10234695"]),
        ("/rate check northwind", ["/ratelimits check northwind"]),
        ("orgsshow", ["/orgs"]),
    ):
        said = await answer(world, VERA, text)
        first = text.split()[0].removeprefix("/")
        assert said.startswith(f"I don't know the command “{first}”. Send `help`")
        assert world.slack.workspace.dm(VERA)[-1].buttons == offered
    message = world.slack.workspace.dm(VERA)[-1]
    await world.slack.click(VERA, message, "/orgs")
    await world.slack.until(lambda: "Northwind" in message.all_text)


async def test_offer_of_a_command_needs_access(world):
    assert "Adam Admin manages access" in await answer(world, NORA, "limits")


@pytest.mark.parametrize(
    "more",
    [
        {"subtype": "thread_broadcast"},
        {"subtype": "me_message"},
        {"subtype": "file_share"},
        {"text": "<@U0GATEHOUSE> orgs"},
    ],
)
async def test_message_that_a_person_sends_in_another_way_is_answered(world, more):
    event = {
        "type": "message",
        "channel": world.slack.workspace.direct(VERA).id,
        "channel_type": "im",
        "user": VERA,
        "text": "orgs",
        "ts": "1.000001",
    }
    await world.slack.event(VERA, {**event, **more})
    (said,) = await world.slack.until(lambda: answers(world, VERA))
    assert "organizations" in said


async def test_person_without_a_role_reads_who_manages_access(world):
    said = await answer(world, NORA, "hi")
    assert said == "You don't have access to Gatehouse yet. Adam Admin manages access."


async def test_request_by_direct_message_is_made(world):
    said = await answer(world, OTTO, "testusers add welcome ada@example.com because why not")
    assert "Sent to" in said
    (card,) = await world.slack.until(world.cards)
    assert "ada@example.com" in card.all_text


async def test_event_delivered_three_times_is_answered_once(world):
    await world.slack.direct_message(OTTO, "testusers add welcome +15550100", again=2)
    await world.slack.until(lambda: answers(world, OTTO))
    await settled(world)
    assert len(answers(world, OTTO)) == 1
    assert len(await world.slack.until(world.cards)) == 1


async def test_event_that_comes_again_after_a_restart_is_not_answered(sqlite_url):
    async with running_world(sqlite_url, inventory_watch="off") as world:
        await world.slack.direct_message(VERA, "orgs")
        await world.slack.until(lambda: answers(world, VERA))
    async with running_world(sqlite_url, inventory_watch="off") as world:
        # The stand-in numbers its events from 1 again, so this event has the same id.
        await world.slack.direct_message(VERA, "orgs")
        await settled(world)
        assert answers(world, VERA) == []
        assert await answer(world, VERA, "orgs")


IGNORED = (
    {"bot_id": "B0OTHER"},
    {"subtype": "bot_message"},
    {"subtype": "message_changed", "hidden": True},
    {"subtype": "message_deleted", "hidden": True},
    {"edited": {"user": VERA, "ts": "1.0"}},
    {"channel_type": "channel", "channel": "C0GENERAL"},
)


async def test_bots_edits_and_deletions_are_ignored(world):
    event = {
        "type": "message",
        "channel": world.slack.workspace.direct(VERA).id,
        "channel_type": "im",
        "user": VERA,
        "text": "orgs",
        "ts": "1.000001",
    }
    for more in IGNORED:
        delivery = await world.slack.event(VERA, {**event, **more})
        assert delivery.status == 200
    await settled(world)
    assert answers(world, VERA) == []


async def test_slow_answer_says_so_and_replaces_that(world):
    hold = world.slack.workspace.faults.hold("users.info")
    await world.slack.direct_message(VERA, "orgs")
    said = await world.slack.until(
        lambda: [item for item in world.slack.workspace.dm(VERA) if item.user != VERA]
    )
    assert "Working on it" in said[0].text
    hold.release()
    await world.slack.until(lambda: "organizations" in said[0].all_text)


async def test_form_is_offered_as_a_button(world):
    await answer(world, OTTO, "testusers")
    message = world.slack.workspace.dm(OTTO)[-1]
    assert message.buttons == ["Change test users"]
    await world.slack.click(OTTO, message, "Change test users")
    form = await world.form(OTTO)
    assert "Identities" in form.labels


async def test_database_that_is_away_has_the_event_delivered_again(world, monkeypatch):
    world.slack.retry_pauses = (0.2, 0.2, 0.2)
    calls = []

    async def away(event_id):
        calls.append(event_id)
        if len(calls) == 1:
            raise DatabaseUnavailable
        return await take(event_id)

    take = world.bot.slack.received.claim
    monkeypatch.setattr(world.bot.slack.received, "claim", away)
    assert await answer(world, VERA, "orgs")
    assert len(set(calls)) == 1
    assert len(calls) == 2


async def test_global_shortcut_opens_the_form(world):
    await world.slack.shortcut(OTTO, "change_test_users")
    form = await world.form(OTTO)
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": "+15550100"})
    assert "Sent to" in (await world.slack.until(lambda: answers(world, OTTO)))[0]


async def test_shortcut_without_a_role_opens_nothing_and_says_who_helps(world):
    await world.slack.shortcut(NORA, "change_test_users")
    (said,) = await world.slack.until(lambda: answers(world, NORA))
    assert "Adam Admin manages access" in said
    assert world.slack.workspace.open_view(NORA) is None


EARLIER = "is from an earlier version of Gatehouse and no longer works."


async def test_shortcut_that_no_longer_exists_is_outdated(world):
    message = world.slack.say(ADA, "C0GENERAL", "Please add +15550100")
    await world.slack.message_shortcut(OTTO, message, "add_as_test_users")
    assert (await world.answer(OTTO)).text == f"This shortcut {EARLIER}"
    await world.slack.shortcut(OTTO, "gone")
    assert await world.slack.until(lambda: answers(world, OTTO)) == [f"This shortcut {EARLIER}"]


async def test_form_that_no_longer_exists_is_outdated(world):
    await world.slack.command(OTTO, "C0GENERAL", "/testusers", "")
    form = await world.form(OTTO)
    form.body["callback_id"] = "gone"
    await world.slack.submit(OTTO, form, {"Flow": "welcome", "Identities": "+15550100"})
    assert (await world.answer(OTTO)).text == f"This form {EARLIER}"
    assert world.slack.workspace.open_view(OTTO) is None


async def test_button_in_home_that_no_longer_exists_is_outdated(world):
    await world.slack.open_home(OTTO)
    home = await world.slack.until(lambda: world.slack.workspace.homes[OTTO])
    home.blocks[0]["elements"][0]["action_id"] = "gone"
    await world.slack.click(OTTO, home, "Change test users")
    assert await world.slack.until(lambda: answers(world, OTTO)) == [f"This button {EARLIER}"]
