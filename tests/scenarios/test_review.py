"""`/testusers review` lists access that has no end date."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sandbox.services.faults import Fault, FaultKind
from sandbox.services.state import Flow
from sandbox.slack.messages import Message
from tests.support.world import ADAM, OTTO, SURVEY, VERA, WELCOME, World, empty_world

DEMO = "FW000000000000000000000000000000aa"
UNNAMED = "FW000000000000000000000000000000bb"
ALIASES = json.dumps({"welcome": WELCOME, "survey": SURVEY, "demo": DEMO, "also": DEMO})


@pytest.fixture
async def three(database_url) -> AsyncIterator[World]:
    """Yield a world that has three named flows, one unnamed flow and no test users."""
    async with empty_world(database_url, flow_aliases=ALIASES, inventory_watch="off") as world:
        for sid in (SURVEY, DEMO, UNNAMED):
            world.services.state.flows[sid] = Flow(sid)
        yield world


def rows(message: Message) -> list[tuple[str, str]]:
    """Return the flow and the identity in each row."""
    return [(row[1], row[0]) for row in re.findall(r"• `(\S+)` on [*`](\w+)[*`]", message.text)]


def break_flow(world: World, sid: str) -> None:
    world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", flow_sid=sid, status=403))


def reads(world: World) -> list[str | None]:
    return [call.flow_sid for call in world.services.state.calls if call.method == "GET"]


async def test_the_review_equals_the_lists_after_edits_from_outside(three):
    await three.applied("add survey +15550001")
    await three.applied("add welcome +15550002 +15550003")
    await three.applied("add welcome +15550004 for 2h")
    await three.applied(f"add {UNNAMED} +15550005")
    edit = three.services.state.edit_flow
    edit(WELCOME, ["+15550009", "+15550002", "+15550004"])
    edit(DEMO, ["ada@example.com"])
    before = len(three.services.state.calls)
    answer = await three.ask(OTTO, "/testusers", "review")
    assert rows(answer) == [
        ("survey", "+15550001"),
        ("welcome", "+15550002"),
        (UNNAMED, "+15550005"),
        *rows(answer)[3:],
    ]
    assert {*rows(answer)[3:]} == {("welcome", "+15550009"), ("demo", "ada@example.com")}
    read = reads(three)[before - len(three.services.state.calls) :]
    # The one flow whose list lacks somebody with access may already be checked again.
    assert sorted(map(str, read)) in (
        sorted([WELCOME, SURVEY, DEMO, UNNAMED]),
        sorted([WELCOME, WELCOME, SURVEY, DEMO, UNNAMED]),
    )
    assert "Access with no end date: *5 test users*" in answer.all_text
    known, outside = answer.text.splitlines()[1], answer.text.splitlines()[-1]
    assert re.search(
        r"since <!date\S+ .* · requested by Otto Operator, approved by Ada Approver", known
    )
    assert outside.endswith("added outside Gatehouse")


async def test_one_flow_can_be_reviewed_alone(three):
    for sid in (WELCOME, SURVEY):
        three.services.state.edit_flow(sid, ["+15550001"])
    answer = await three.ask(OTTO, "/testusers", "review Survey")
    assert rows(answer) == [("survey", "+15550001")]
    assert (await three.ask(OTTO, "/testusers", "review demo")).text == (
        "Access with no end date: *0 test users*"
    )
    wrong = await three.ask(OTTO, "/testusers", "review surve")
    assert wrong.buttons == ["/testusers review survey"]


async def test_a_flow_that_cannot_be_read_is_named_and_the_others_are_shown(three):
    for sid in (WELCOME, SURVEY, DEMO):
        three.services.state.edit_flow(sid, ["+15550001"])
    break_flow(three, SURVEY)
    three.services.state.flows.pop(DEMO)
    answer = await three.ask(OTTO, "/testusers", "review")
    assert rows(answer) == [("welcome", "+15550001")]
    assert "*1 test user* (2 flows can't be read)" in answer.all_text
    assert ":warning: *survey* is missing here." in answer.all_text
    assert ":warning: *demo* is missing here. The flow service can't find" in answer.all_text


async def test_the_review_has_pages(world):
    world.services.state.edit_flow(SURVEY, [])
    people = [f"+1555{number:04}" for number in range(19)]
    world.services.state.edit_flow(WELCOME, people)
    answer = await world.ask(OTTO, "/testusers", "review")
    found = rows(answer)
    for number in (2, 3):
        await world.slack.click(OTTO, answer, "Next")
        await world.shows(answer, f"Page {number} of 3")
        found += rows(answer)
    assert found == [("welcome", person) for person in people]
    assert answer.buttons == ["Set an end date", "Remove"] * 3 + ["Previous"]


async def test_a_page_fits_into_a_message_whatever_the_identities_are(world):
    for identity in ("x" * 300, "&" * 300, '"' * 300, "\u0441" * 150):
        world.services.state.edit_flow(
            WELCOME, [f"{number}{identity}"[:300] for number in range(8)]
        )
        answer = await world.ask(OTTO, "/testusers", "review welcome")
        assert "*8 test users*" in answer.all_text
    assert answer.buttons == ["Set an end date", "Remove"] * 8


@pytest.mark.parametrize("way", ["command", "direct message"])
async def test_a_viewer_is_refused(world, way):
    calls = len(world.services.state.calls)
    if way == "command":
        await world.ask(VERA, "/testusers", "review")
    else:
        await world.slack.direct_message(VERA, "testusers review")
    seen = world.slack.workspace
    (answer,) = await world.slack.until(
        lambda: [
            item
            for item in (*seen.ephemerals(VERA), *seen.dm(VERA))
            if "You need the operator role" in item.all_text
        ]
    )
    assert answer.buttons == []
    assert len(world.services.state.calls) == calls


async def test_an_end_date_is_asked_for_with_the_form_filled_in(world):
    world.services.state.edit_flow(WELCOME, ["+15550001", "+15550002"])
    answer = await world.ask(OTTO, "/testusers", "review welcome")
    await world.slack.click(OTTO, answer, "Set an end date")
    await world.slack.submit(OTTO, await world.form(), {"For": "2h"})
    card = await world.card()
    await world.approve(card, "*Applied*")
    assert rows(await world.ask(OTTO, "/testusers", "review welcome")) == [("welcome", "+15550002")]
    assert world.flow.identities == ["+15550001", "+15550002"]


async def test_remove_asks_and_nothing_is_removed_without_approval(world):
    world.services.state.edit_flow(WELCOME, ["+15550001"])
    answer = await world.ask(OTTO, "/testusers", "review welcome")
    await world.slack.click(OTTO, answer, "Remove")
    await world.slack.submit(OTTO, await world.form(), {"Reason": "has left"})
    card = await world.card()
    assert "remove `+15550001` from *welcome*" in card.all_text.lower()
    assert world.flow.history == []
    await world.approve(card, "*Applied*")
    assert world.flow.identities == []


async def test_status_counts_the_people_in_the_review(three):
    await three.applied("add survey +15550001")
    await three.applied("add welcome +15550004 for 2h")
    three.services.state.edit_flow(DEMO, ["+15550002"])
    shown = await three.ask(VERA, "/gatehouse", "status")
    assert "Access with no end date: *2 test users*" in shown.all_text
    break_flow(three, DEMO)
    shown = await three.ask(VERA, "/gatehouse", "status")
    assert "*1 test user* (1 flow can't be read)" in shown.all_text


async def test_status_does_not_wait_for_a_flow_service_that_hangs(world):
    world.services.state.faults.add(Fault(FaultKind.HANG, "flow"))
    shown = await world.ask(VERA, "/gatehouse", "status")
    assert "Access with no end date: the lists couldn't be read in time." in shown.all_text
    assert "SQLite database: reachable" in shown.all_text


async def test_access_that_is_made_endless_later_counts_from_then(world):
    await world.applied("add welcome +15550001 for 30d")
    await world.later(timedelta(days=1))
    await world.applied("add survey +15550002")
    await world.later(timedelta(days=2))
    await world.applied("add welcome +15550001")
    answer = await world.ask(ADAM, "/testusers", "review")
    assert [row for row in rows(answer) if row[1].startswith("+155500")] == [
        ("survey", "+15550002"),
        ("welcome", "+15550001"),
    ]
