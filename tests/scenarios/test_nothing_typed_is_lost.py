"""What people typed and the bot refused can be corrected in the form, or copied from the answer."""

import html
import json
from datetime import UTC, datetime

import pytest

from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import Message, View
from tests.support.world import OTTO, WELCOME, empty_world

NUMBERS = [f"+1555{number:07}" for number in range(170)]


def filled(view: View) -> dict[str, str]:
    """Return the values that a form starts with, by label."""
    inputs = {}
    for block in view.blocks:
        element = block.get("element", {})
        option = element.get("initial_option") or {}
        value = element.get("initial_value") or option.get("value")
        value = value or element.get("initial_date_time")
        if value:
            inputs[block["label"]["text"]] = value
    return inputs


def copied(answer: Message) -> str:
    """Return the text of an answer's code blocks."""
    assert len(answer.text) <= 4000
    shown = [block["text"]["text"] for block in answer.blocks if block["type"] == "section"]
    return html.unescape("\n".join(text.strip("`\n") for text in shown if text.startswith("```")))


async def opened(world, text: str) -> dict[str, str]:
    """Send a command that is refused, and return the values in the form that its button opens."""
    answer = await world.ask(OTTO, "/testusers", text)
    assert world.cards() == []
    await world.slack.click(OTTO, answer, "Open the form")
    return filled(await world.form())


ONE = {"Flow": "welcome", "Change": "add", "Identities": "+15557001"}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (
            "add welcome +15557001, +1 555 0142 vera “a b” for 2 hours because a demo",
            {
                **ONE,
                "Identities": "+15557001\n+1 555 0142\nvera\n“a b”",
                "For": "2 hours",
                "Reason": "a demo",
            },
        ),
        ("add welcome whatsapp:+1 555 0142", {**ONE, "Identities": "whatsapp:+1 555 0142"}),
        ("remove welcome @demo vera", {**ONE, "Change": "remove", "Identities": "@demo\nvera"}),
        ("add welcome +15557001 until eod", {**ONE, "For": "until eod"}),
        ("add welcome +15557001 for 2 hiurs", {**ONE, "For": "for 2 hiurs"}),
        ("add welcome +15557001 for 1h for 2h", {**ONE, "For": "1h for 2h"}),
        ("add welcome +15557001 from friday", {**ONE, "Identities": "+15557001\nfrom\nfriday"}),
        ("add welcome +15557001 because demo for 2h", {**ONE, "Reason": "demo for 2h"}),
        ("add welcome +15557001 +15557001", {**ONE, "Identities": "+15557001\n+15557001"}),
        ("add welcome +15557001 @nobody", {**ONE, "Identities": "+15557001\n@nobody"}),
        ("add welcome +15557001 until 2020-01-01", {**ONE, "For": "until 2020-01-01"}),
        ("add welcmoe vera", {"Flow": "welcmoe", "Change": "add", "Identities": "vera"}),
        ("add +15557001 for 2h", {"Change": "add", "Identities": "+15557001", "For": "2h"}),
        ("add welcmoe +15557001", {"Flow": "welcmoe", "Change": "add", "Identities": "+15557001"}),
        ("remove welcome +15557001 for 2h", {**ONE, "Change": "remove", "For": "for 2h"}),
        ("add welcome because", {"Flow": "welcome", "Change": "add"}),
    ],
)
async def test_a_refused_command_opens_the_form_with_everything(world, text, form):
    assert await opened(world, text) == form


async def test_a_refused_direct_message_opens_the_form(world):
    delivery = await world.slack.direct_message(
        OTTO, "testusers add welcome *+15557001* \u201c+2\u201d"
    )
    assert delivery.status == 200
    said = world.slack.workspace.dm
    (answer,) = await world.slack.until(lambda: [item for item in said(OTTO) if item.buttons])
    await world.slack.click(OTTO, answer, "Open the form")
    assert filled(await world.form()) == {**ONE, "Identities": "*+15557001*\n\u201c+2\u201d"}


async def test_the_form_has_no_end_that_nobody_typed(world):
    await world.applied("add welcome +15557001 for 2h")
    answer = await world.ask(OTTO, "/testusers", "add welcome +15557001 vera")
    await world.slack.click(OTTO, answer, "Open the form")
    assert "Until" not in filled(await world.form())


async def test_a_typed_time_is_in_the_form(world):
    form = await opened(world, "add welcome +15557001 vera until 6pm 2027-01-01")
    assert datetime.fromtimestamp(form["Until"], UTC).isoformat() == "2027-01-01T17:00:00+00:00"


async def test_what_does_not_fit_into_the_form_can_be_copied(world):
    reason = "x" * 600 + " <&>"
    typed = f"add welcome {' '.join(NUMBERS)} vera because {reason}"
    answer = await world.ask(OTTO, "/testusers", typed)
    assert "The reason is too long" in answer.all_text
    assert copied(answer).splitlines() == [reason, "", *NUMBERS, "vera"]
    await world.slack.click(OTTO, answer, "Open the form")
    assert filled(await world.form()) == {"Flow": "welcome", "Change": "add"}


async def test_a_long_form_that_failed_can_be_copied(world):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    view = await world.opened_form()
    typed = "\n".join(NUMBERS)
    values = {"Flow": "welcome", "Identities": typed, "For": "2h", "Reason": "a demo"}
    await world.slack.submit(OTTO, view, values)
    answer = await world.answer(OTTO)
    assert "having problems" in answer.all_text
    assert copied(answer) == typed
    await world.slack.click(OTTO, answer, "Try again")
    expected = {"Flow": "welcome", "Change": "add", "For": "2h", "Reason": "a demo"}
    again = filled(await world.form())
    assert again == {**expected, "Flow": again["Flow"]}
    assert again["Flow"] in ("welcome", WELCOME)


async def test_a_long_command_that_failed_can_be_copied(world):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    typed = f"add welcome {' '.join(NUMBERS)}"
    answer = await world.ask(OTTO, "/testusers", typed)
    assert copied(answer) == f"/testusers {typed}"


@pytest.mark.parametrize("gap", ["\t", "\u2028"])
async def test_a_command_with_cells_of_a_spreadsheet_can_be_copied_and_sent(world, gap):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    failed = await world.ask(OTTO, "/testusers", f"add welcome {gap.join(NUMBERS)}")
    assert copied(failed) == f"/testusers add welcome {' '.join(NUMBERS)}"
    world.services.state.faults.lift()
    answer = await world.ask(OTTO, "/testusers", copied(failed).removeprefix("/testusers "))
    assert "Sent to" in answer.text


@pytest.mark.parametrize("quotes", ['""', "“”"])
async def test_a_gap_in_quotes_is_not_copied_as_another_identity(world, quotes):
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="GET"))
    typed = f"add welcome {quotes[0]}a\tb{quotes[1]} {' '.join(NUMBERS)}"
    failed = await world.ask(OTTO, "/testusers", typed)
    assert copied(failed) == f"/testusers {typed}".replace("\t", "�")


@pytest.mark.parametrize("text", ["preset save demo +15550100 vera", "prset save demo +1 because"])
async def test_another_command_that_is_refused_can_be_copied_or_repeated(world, text):
    answer = await world.ask(OTTO, "/testusers", f"{text} {'x' * 30}")
    assert copied(answer) == f"/testusers {text} {'x' * 30}" or answer.buttons


async def test_a_command_over_the_limit_can_be_tried_again(sqlite_url):
    async with empty_world(sqlite_url, commands_per_minute="1") as world:
        await world.ask(OTTO, "/testusers", "add welcome +1")
        answer = await world.ask(OTTO, "/testusers", "add welcome +2")
        assert "lot of commands" in answer.all_text
        assert answer.buttons == ["Try again"]


@pytest.mark.parametrize("end", ["", "2d"])
async def test_a_change_that_a_policy_refuses_opens_the_form(sqlite_url, end):
    policies = json.dumps({"welcome": {"longest": "1d"}})
    async with empty_world(sqlite_url, flow_policies=policies) as world:
        form = await opened(world, "add welcome +15557001" + (end and f" for {end}"))
        assert form == {**ONE, **({"For": end} if end else {})}
