"""The frame around every listener: acknowledged at once, answered whatever happens."""

import asyncio
import json

import pytest
from slack_bolt.listener_matcher.async_builtins import AsyncBuiltinListenerMatcher
from structlog.testing import capture_logs

from bot.commands import FORM, Command, Form
from bot.errors import DatabaseUnavailable, NotFound, Replayed
from bot.permissions import ACTING, Permission
from bot.ui import block_kit
from bot.ui.message import Message
from handlers import answering
from handlers import listeners as entry
from handlers.interactions import read_action, read_command, read_submission, read_suggestion
from handlers.modals import hidden, typed_value
from tests.support.entries import payload_of
from tests.support.entry_points import EntryPoint
from tests.support.listening import AnythingTyped, small_bot

USER, CHANNEL = "U0VIEWER", "C0GENERAL"
# What Bolt forgets is answered after three seconds; what it does not after milliseconds, or, on a
# busy machine, some hundreds of them.
AT_ONCE = 1.5
BUTTON = Message(
    "the list",
    (block_kit.section("the list"), block_kit.actions(block_kit.button("Next", "press", "7"))),
)
MODAL = {
    "type": "modal",
    "callback_id": "form",
    "title": {"type": "plain_text", "text": "Form"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "typed"},
        }
    ],
}


@pytest.fixture
async def bot():
    async with small_bot() as running:
        yield running


def seen(bot) -> list[str]:
    return [message.text for message in bot.slack.workspace.ephemerals(USER)]


async def shown_button(bot):
    """The button's message, as the answer to a command."""

    async def answer(ask):
        return BUTTON

    bot.command("/list", answer)
    await bot.slack.command(USER, CHANNEL, "/list")
    return await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[-1])


class Held:
    """Work that stands still until it is released."""

    def __init__(self, result: Message | Exception | None) -> None:
        self.release = asyncio.Event()
        self._result = result

    async def __call__(self, ask) -> Message | None:
        await self.release.wait()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


async def test_command_is_offered_to_its_own_listener_alone(bot, monkeypatch):
    offered, matches = [], AsyncBuiltinListenerMatcher.async_matches

    async def noted(self, req, resp):
        offered.append(req)
        return await matches(self, req, resp)

    monkeypatch.setattr(AsyncBuiltinListenerMatcher, "async_matches", noted)
    work = Held(None)
    work.release.set()
    for name in ("/first", "/second", "/third"):
        bot.command(name, work)
    await bot.slack.command(USER, CHANNEL, "/third")
    assert len(offered) == 1


async def test_a_command_is_acknowledged_while_its_work_stands_still(bot):
    work = Held(Message("done"))
    bot.command("/slow", work)
    delivery = await bot.slack.command(USER, CHANNEL, "/slow")
    assert (delivery.status, delivery.body, delivery.error) == (200, "", None)
    assert delivery.seconds < AT_ONCE
    work.release.set()
    await bot.slack.until(lambda: seen(bot) == ["done"])


async def test_slow_work_says_so_and_that_message_is_replaced(bot):
    work = Held(Message("done"))
    bot.command("/slow", work)
    await bot.slack.command(USER, CHANNEL, "/slow")
    notice = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    assert "Working on it" in notice.text
    work.release.set()
    await bot.slack.until(lambda: notice.text == "done")
    assert seen(bot) == ["done"]


async def test_a_slow_error_replaces_the_notice(bot):
    work = Held(NotFound("There is no such thing."))
    bot.command("/slow", work)
    await bot.slack.command(USER, CHANNEL, "/slow")
    notice = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    work.release.set()
    await bot.slack.until(lambda: notice.text == "There is no such thing.")
    assert await bot.outcomes() == {("/slow", "not_found"): 1.0}


async def test_a_notice_goes_away_when_there_is_nothing_to_say(bot):
    work = Held(None)
    bot.command("/slow", work)
    await bot.slack.command(USER, CHANNEL, "/slow")
    notice = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    assert "Working on it" in notice.text
    work.release.set()
    assert await bot.outcomes() == {("/slow", "ok"): 1.0}
    assert notice.deleted
    assert seen(bot) == []


@pytest.mark.parametrize("error", [NotFound("No such thing."), KeyError("x"), RecursionError()])
async def test_an_error_right_after_the_acknowledgement_leaves_it_standing(bot, error):
    async def broken(ask):
        raise error

    bot.command("/broken", broken)
    delivery = await bot.slack.command(USER, CHANNEL, "/broken")
    assert (delivery.status, delivery.error) == (200, None)
    assert delivery.seconds < AT_ONCE
    answer = await bot.slack.until(lambda: seen(bot)[0])
    expected = isinstance(error, NotFound)
    assert ("No such thing." in answer) is expected
    assert ("Something went wrong" in answer) is not expected


async def test_what_nobody_expected_has_a_reference_that_is_in_the_log(bot, capsys):
    async def broken(ask):
        raise KeyError("a detail")

    bot.command("/broken", broken)
    await bot.slack.command(USER, CHANNEL, "/broken")
    answer = await bot.slack.until(lambda: seen(bot)[0])
    reference = answer.split("`")[1]
    assert "a detail" not in answer
    assert reference in capsys.readouterr().out
    assert await bot.outcomes() == {("/broken", "broken"): 1.0}


async def test_a_person_that_cannot_be_found_is_told(bot):
    bot.people.lost.add(USER)
    bot.command("/x", Held(Message("never")))
    await bot.slack.command(USER, CHANNEL, "/x")
    assert await bot.slack.until(lambda: seen(bot)) == ["Nobody knows who you are."]


async def test_who_may_not_ask_for_help_gets_as_far_as_no_listener(bot):
    bot.people.strangers.add(USER)
    bot.command("/x", Held(Message("never")))
    await bot.slack.command(USER, CHANNEL, "/x")
    assert await bot.slack.until(lambda: seen(bot)) == ["You may not ask for help."]


async def test_no_words_stay_beside_a_form_that_opens_late(bot, monkeypatch):
    monkeypatch.setattr(answering, "PATIENCE_SECONDS", 0.0)
    message = await shown_button(bot)
    work = Held(None)
    bot.action("press", work, opens_form=True)
    await bot.slack.click(USER, message, "Next")
    work.release.set()
    await bot.listeners.tasks.drain(5)
    assert seen(bot) == ["the list"]


async def test_a_button_puts_its_answer_in_the_place_of_its_message(bot):
    message = await shown_button(bot)
    work = Held(Message("page 2"))
    work.release.set()
    bot.action("press", work, replaces=True)
    delivery = await bot.slack.click(USER, message, "Next")
    assert delivery.status == 200
    await bot.slack.until(lambda: message.text == "page 2")
    assert seen(bot) == ["page 2"]


async def test_an_error_leaves_the_clicked_message(bot):
    message = await shown_button(bot)
    work = Held(NotFound("It is gone."))
    work.release.set()
    bot.action("press", work, replaces=True)
    await bot.slack.click(USER, message, "Next")
    await bot.slack.until(lambda: seen(bot) == ["the list", "It is gone."])
    assert message.buttons == ["Next"]


async def test_a_slow_error_of_a_button_offers_the_way_back(bot):
    message = await shown_button(bot)
    work = Held(NotFound("It is gone."))
    bot.action("press", work, replaces=True)
    await bot.slack.click(USER, message, "Next")
    await bot.slack.until(lambda: "Working on it" in message.text)
    work.release.set()
    await bot.slack.until(lambda: "It is gone." in message.all_text)
    assert message.buttons == ["Try again"]
    work._result = BUTTON
    await bot.slack.click(USER, message, "Try again")
    await bot.slack.until(lambda: message.buttons == ["Next"])
    assert seen(bot) == ["the list"]


async def test_a_button_that_answers_below_never_touches_its_message(bot):
    message = await shown_button(bot)
    work = Held(Message("details"))
    bot.action("press", work)
    await bot.slack.click(USER, message, "Next")
    await bot.slack.until(lambda: len(seen(bot)) == 2)
    assert seen(bot)[1] == "Working on it …"
    work.release.set()
    await bot.slack.until(lambda: seen(bot)[2:] == ["details"])
    assert (message.text, message.is_edited) == ("the list", False)


async def test_slack_asking_to_wait_is_obeyed(bot):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=7)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == [7]


async def test_slack_asking_to_wait_for_long_is_not_waited_for_nor_asked_again(bot):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=3600, times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.listeners.tasks.drain(5)
    assert bot.waits.slept == []
    assert await bot.outcomes() == {("/x", "ok"): 1.0}


@pytest.mark.parametrize("status", [500, 503])
async def test_an_answer_that_slack_drops_is_sent_again(bot, status):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    bot.slack.workspace.faults.status("response_url", status, times=2)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == [1.0, 2.0]


async def test_an_address_that_is_used_up_makes_it_a_direct_message(bot):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    bot.slack.workspace.faults.status("response_url", 404, body="used_url", times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.listeners.tasks.drain(5)
    assert seen(bot) == []
    assert [one.text for one in bot.slack.workspace.dm(USER)] == ["done"]
    assert bot.waits.slept == []


@pytest.mark.parametrize("trouble", ["cut", "drop"])
async def test_an_answer_that_may_have_arrived_is_not_said_again_elsewhere(bot, trouble):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    getattr(bot.slack.workspace.faults, trouble)("response_url", times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.listeners.tasks.drain(5)
    assert bot.slack.workspace.dm(USER) == []


async def test_what_slack_takes_is_taken_whatever_it_says_to_it(bot):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    bot.slack.workspace.faults.status("response_url", 200, body="received")
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.listeners.tasks.drain(5)
    assert bot.slack.workspace.dm(USER) == []


@pytest.mark.parametrize("body", ["invalid_blocks", '{"ok": false, "error": "invalid_blocks"}'])
async def test_blocks_that_slack_refuses_are_said_in_plain_text(bot, body):
    async def answer(ask):
        return BUTTON

    bot.command("/x", answer)
    bot.slack.workspace.faults.status("response_url", 400, body=body)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["the list"])
    assert bot.slack.workspace.ephemerals(USER)[0].blocks == []
    assert bot.slack.workspace.dm(USER) == []


async def test_a_form_left_open_for_longer_than_its_address_lasts_is_answered_all_the_same(bot):
    async def answer(ask):
        return Message("thanks")

    bot.listeners.submission("form", Permission.REQUEST, lambda click: {}, answer)
    gone = json.dumps({"reply_to": f"{bot.slack.address}/response/gone"})
    view = bot.slack.workspace.open(USER, {**MODAL, "private_metadata": gone})
    await bot.slack.submit(USER, view, {"Why": "because"})
    (answer,) = await bot.slack.until(lambda: bot.slack.workspace.dm(USER))
    assert answer.text == "thanks"


CHART = {"type": "data_visualization", "title": "Calls", "chart": {"type": "pie", "segments": []}}
TABLED = Message(
    "two organizations",
    (
        block_kit.table([("Name", "State"), ("A & B", "ok")]),
        CHART,
        block_kit.actions(block_kit.button("Next", "press", "7")),
    ),
)


async def test_chart_and_table_that_slack_refuses_leave_their_buttons(bot):
    async def answer(ask):
        return TABLED

    bot.command("/x", answer)
    bot.slack.workspace.faults.status("response_url", 400, body="invalid_blocks")
    await bot.slack.command(USER, CHANNEL, "/x")
    message = await bot.slack.until(lambda: bot.slack.workspace.ephemerals(USER)[0])
    assert message.buttons == ["Next"]
    assert "Name · State\nA &amp; B · ok" in message.all_text
    assert [block["type"] for block in message.blocks] == ["section", "actions"]


async def test_message_whose_other_blocks_are_refused_is_said_in_plain_text(bot):
    async def answer(ask):
        return TABLED

    bot.command("/x", answer)
    bot.slack.workspace.faults.status("response_url", 400, body="invalid_blocks", times=2)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: seen(bot) == ["two organizations"])
    assert bot.slack.workspace.ephemerals(USER)[0].blocks == []


async def test_nothing_is_said_where_slack_takes_it_nowhere(bot):
    work = Held(Message("done"))
    work.release.set()
    bot.command("/x", work)
    for method in ("response_url", "chat.postMessage"):
        bot.slack.workspace.faults.status(method, 500, times=None)
    await bot.slack.command(USER, CHANNEL, "/x")
    assert await bot.outcomes() == {("/x", "ok"): 1.0}
    assert seen(bot) == []


async def test_a_notice_that_slack_does_not_take_holds_nothing_up(bot):
    work = Held(Message("done"))
    bot.command("/x", work)
    bot.slack.workspace.faults.ratelimit("response_url", retry_after=5)
    await bot.slack.command(USER, CHANNEL, "/x")
    await bot.slack.until(lambda: bot.slack.workspace.calls_of("response_url"))
    work.release.set()
    await bot.slack.until(lambda: seen(bot) == ["done"])
    assert bot.waits.slept == []


async def test_commands_over_the_limit_are_declined_kindly():
    async with small_bot(commands_per_minute=3) as bot:
        work = Held(Message("done"))
        work.release.set()
        bot.command("/x", work)
        for _ in range(5):
            delivery = await bot.slack.command(USER, CHANNEL, "/x")
            assert delivery.status == 200
        await bot.slack.command("U0ADMIN", CHANNEL, "/x")
        await bot.slack.until(lambda: len(seen(bot)) == 5)
        assert sorted(text == "done" for text in seen(bot)) == [False, False, True, True, True]
        refused = [text for text in seen(bot) if text != "done"]
        assert all("Try again in" in text for text in refused)
        admins = await bot.slack.until(lambda: bot.slack.workspace.ephemerals("U0ADMIN"))
        assert [one.text for one in admins] == ["done"]
        assert (await bot.outcomes())[("/x", "too_many_commands")] == 2


async def test_buttons_do_not_count_as_commands():
    async with small_bot(commands_per_minute=2) as bot:
        message = await shown_button(bot)
        work = Held(None)
        work.release.set()
        bot.action("press", work, replaces=True)
        for _ in range(3):
            await bot.slack.click(USER, message, "Next")
        assert await bot.outcomes() == {("/list", "ok"): 1.0, ("press", "ok"): 3.0}
        assert seen(bot) == ["the list"]


async def test_clicks_over_the_limit_are_declined_once_and_do_nothing():
    async with small_bot(commands_per_minute=2) as bot:
        message = await shown_button(bot)
        work = Held(None)
        work.release.set()
        bot.action("press", work, replaces=True)
        deliveries = [await bot.slack.click(USER, message, "Next") for _ in range(9)]
        assert {delivery.status for delivery in deliveries} == {200}
        outcomes = await bot.outcomes()
        assert (outcomes["press", "ok"], outcomes["press", "too_many_commands"]) == (4.0, 5.0)
        (told,) = [text for text in seen(bot) if text != "the list"]
        assert "lot of clicks" in told


async def test_stored_clicks_over_the_limit_are_not_stored():
    async with small_bot(commands_per_minute=1) as bot:
        stored = []

        async def keep(click):
            stored.append(click)

        message = await shown_button(bot)
        bot.listeners.durable_action("press", Permission.DECIDE, keep)
        for _ in range(6):
            assert (await bot.slack.click(USER, message, "Next")).status == 200
        await bot.outcomes()
        assert len(stored) == 2
        assert len([text for text in seen(bot) if "lot of clicks" in text]) == 1


@pytest.mark.parametrize("durable", [True, False])
async def test_forms_over_the_limit_stay_open_with_what_was_typed(durable):
    async with small_bot(commands_per_minute=1) as bot:
        done = []

        async def work(it):
            done.append(it)

        if durable:
            bot.listeners.durable_submission("form", Permission.DECIDE, lambda click: {}, work)
        else:
            bot.listeners.submission("form", Permission.REQUEST, lambda click: {}, work)
        asked, answers = EntryPoint("submission", "form", None, "{}"), []
        for _ in range(4):
            body = payload_of(bot.slack, USER, asked, "{}")
            body["view"]["blocks"] = MODAL["blocks"]
            answers.append(await bot.slack._deliverer.interaction(body))
        await bot.outcomes()
        assert len(done) == 2
        assert "lot of clicks" in answers[3].json["errors"]["why"]


async def test_type_ahead_over_the_limit_offers_nothing():
    async with small_bot(commands_per_minute=1) as bot:

        async def suggest(ask, typed):
            return [{"text": {"type": "plain_text", "text": typed}, "value": typed}]

        assert [await options(bot, suggest) for _ in range(4)] == [["typed"], ["typed"], [], []]


async def test_a_click_is_stored_before_it_is_acknowledged(bot):
    stored, go_on = [], asyncio.Event()

    async def keep(click):
        await go_on.wait()
        stored.append(click.value)

    message = await shown_button(bot)
    bot.listeners.durable_action("press", Permission.DECIDE, keep)
    clicking = asyncio.create_task(bot.slack.click(USER, message, "Next"))
    await asyncio.wait({clicking}, timeout=0.1)
    assert not clicking.done()
    go_on.set()
    assert (await clicking).status == 200
    assert stored == ["7"]


async def test_a_click_that_is_stored_slowly_is_acknowledged_before_slack_gives_up(
    bot, monkeypatch
):
    monkeypatch.setattr(entry, "STORE_SECONDS", 0.1)
    stored, go_on = [], asyncio.Event()

    async def keep(click):
        await go_on.wait()
        stored.append(click.value)

    message = await shown_button(bot)
    bot.listeners.durable_action("press", Permission.DECIDE, keep)
    assert (await bot.slack.click(USER, message, "Next")).status == 200
    assert stored == []
    go_on.set()
    await bot.listeners.tasks.drain(5)
    assert stored == ["7"]


@pytest.mark.parametrize(
    ("error", "words"),
    [(DatabaseUnavailable(), "Nothing was changed"), (KeyError("x"), "Reference: `")],
)
async def test_a_click_that_cannot_be_stored_is_told_of(bot, error, words):
    async def keep(click):
        raise error

    message = await shown_button(bot)
    bot.listeners.durable_action("press", Permission.DECIDE, keep)
    with capture_logs() as logs:
        assert (await bot.slack.click(USER, message, "Next")).status == 200
        await bot.slack.until(lambda: words in seen(bot)[-1])
    references = [line["reference"] for line in logs if line["event"] == "click.broken"]
    assert all(reference in seen(bot)[-1] for reference in references)
    assert message.text == "the list"


async def test_a_modal_shows_what_is_wrong_at_its_input(bot):
    async def answer(ask):
        return Message("thanks")

    def check(click):
        return {"why": "Say why."}

    bot.listeners.submission("form", Permission.REQUEST, check, answer)
    view = bot.slack.workspace.open(USER, MODAL)
    await bot.slack.submit(USER, view, {"Why": "no"})
    assert view.errors == {"why": "Say why."}
    assert bot.slack.workspace.open_view(USER) is view


@pytest.mark.parametrize("is_durable", [True, False])
async def test_a_modal_closes_and_its_work_goes_on(bot, is_durable):
    done = asyncio.Event()

    async def work(_):
        done.set()

    if is_durable:
        bot.listeners.durable_submission("form", Permission.DECIDE, lambda click: {}, work)
    else:
        bot.listeners.submission("form", Permission.REQUEST, lambda click: {}, work)
    view = bot.slack.workspace.open(USER, MODAL)
    delivery = await bot.slack.submit(USER, view, {"Why": "because"})
    assert delivery.seconds < AT_ONCE
    assert bot.slack.workspace.open_view(USER) is None
    await asyncio.wait_for(done.wait(), 5)


async def options(bot, suggest):
    bot.listeners.options("menu", Permission.REQUEST, suggest)
    asked = EntryPoint("options", "menu", None, "typed")
    payload = payload_of(bot.slack, USER, asked, "typed")
    delivery = await bot.slack._deliverer.interaction(payload)
    assert delivery.status == 200
    return [one["value"] for one in delivery.json["options"]]


async def test_a_type_ahead_gets_options(bot):
    async def suggest(ask, typed):
        return [{"text": {"type": "plain_text", "text": typed}, "value": typed}]

    assert await options(bot, suggest) == ["typed"]


@pytest.mark.parametrize("error", [NotFound("x"), KeyError("x"), None])
async def test_a_type_ahead_in_trouble_gets_no_option(bot, error, monkeypatch):
    monkeypatch.setattr(entry, "SUGGEST_SECONDS", 0.1)

    async def suggest(ask, typed):
        if error is None:
            await asyncio.Event().wait()
        raise error

    assert await options(bot, suggest) == []


NONSENSE = [None, 7, [], {}, "x", [7], {"id": 7}, {"id": None}, [[]]]


@pytest.mark.parametrize("read", [read_command, read_action, read_submission, read_suggestion])
@pytest.mark.parametrize("value", NONSENSE)
def test_payloads_of_any_form_are_read(read, value):
    fields = ("user_id", "team_id", "team", "user", "text", "view", "actions", "container", "value")
    click = read(dict.fromkeys(fields, value))
    assert isinstance(click.slack_user_id, str)
    assert all(isinstance(team, str) for team in click.team_ids)
    assert isinstance(click.value, str)
    assert isinstance(click.text, str)


@pytest.mark.parametrize("escaped", ["\\u0000", "\\ud83d", "\\udc00"])
def test_what_a_database_cannot_store_is_not_read(escaped):
    character = json.loads(f'"{escaped}"')
    command = read_command({"user_id": "U1", "text": f"list {character}"})
    press = read_action({"actions": [{"value": f"a{character}b"}]})
    view = {"private_metadata": f'{{"request": "a{escaped}b"}}'}
    texts = (command.text, press.value, hidden(view, "request"))
    assert texts == ("list \ufffd", "a\ufffdb", "a\ufffdb")


def test_what_is_typed_into_a_form_is_read_without_nul_and_with_half_a_character():
    view = {"state": {"values": {"why": {"typed": {"value": "be\0cause \ud83d \ud83d\ude00"}}}}}
    assert typed_value(view, "why") == "be\ufffdcause \ud83d \ud83d\ude00"


def test_a_second_delivery_is_told_from_a_second_command():
    body = {"user_id": "U1", "text": "add x", "trigger_id": "1.2", "response_url": "https://x/1"}
    first = read_command(body).delivery
    assert first == read_command(dict(body)).delivery
    for name in ("user_id", "text", "trigger_id", "response_url"):
        assert read_command({**body, name: "other"}).delivery != first
    assert read_command({**body, "trigger_id": ""}).delivery == ""


async def press_what_requires(bot, permission, **options) -> list[str]:
    """Press a button that requires a permission; return what was done."""
    done = []

    async def answer(ask):
        done.append(ask.text)
        return Message("done")

    bot.listeners.action("act", permission, answer, **options)
    pressed = EntryPoint("action", "act", permission)
    await bot.slack._deliverer.interaction(payload_of(bot.slack, USER, pressed, "1"))
    await bot.outcomes()
    return done


@pytest.mark.parametrize("permission", sorted(ACTING))
async def test_what_acts_is_done_once_and_a_replay_is_not_answered(bot, permission):
    bot.deliveries.is_first = False
    assert await press_what_requires(bot, permission) == []
    assert seen(bot) == []
    assert await bot.outcomes() == {("act", "replayed"): 1.0}


@pytest.mark.parametrize(
    ("permission", "options"),
    [(Permission.READ, {}), (None, {}), (Permission.REQUEST, {"opens_form": True})],
)
async def test_what_only_shows_is_not_written_down(bot, permission, options):
    assert await press_what_requires(bot, permission, **options) == [""]
    assert bot.deliveries.asked == 0


async def test_form_is_opened_without_being_written_down(bot):
    form = Form(FORM, "", "open a form", Permission.REQUEST)
    opened = []

    async def answer(context, _):
        opened.append(context.text)
        return Message("opened")

    class Nothing(AnythingTyped):
        form = FORM

    bot.listeners.command(Command("/open", "", (form,)), Nothing, answer)
    await bot.slack.command(USER, CHANNEL, "/open")
    await bot.outcomes()
    assert (opened, bot.deliveries.asked) == ([""], 0)


@pytest.mark.parametrize("is_first", [True, False])
async def test_stored_click_that_came_before_is_counted_and_not_told(bot, is_first):
    async def store(_interaction):
        if not is_first:
            raise Replayed("This was done before.")

    bot.listeners.durable_action("act", Permission.DECIDE, store)
    pressed = EntryPoint("action", "act", Permission.DECIDE)
    await bot.slack._deliverer.interaction(payload_of(bot.slack, USER, pressed, "1"))
    assert await bot.outcomes() == ({} if is_first else {("act", "replayed"): 1.0})
    assert seen(bot) == []
