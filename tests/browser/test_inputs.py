"""The page displays the different kinds of inputs and blocks."""

from typing import Any

import pytest
from playwright.async_api import expect

from sandbox.launch import Sandbox
from sandbox.slack.chat import post_message
from sandbox.slack.filling import view_state
from sandbox.slack.validation import check_message, check_view
from tests.browser.looking import violations
from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def option(name: str) -> dict[str, Any]:
    return {"text": plain(name), "value": name.lower()}


RED_BLUE = [option("Red"), option("Blue")]
INPUTS: dict[str, dict[str, Any]] = {
    "Name": {"type": "plain_text_input", "max_length": 10},
    "Story": {"type": "plain_text_input", "multiline": True, "initial_value": "once"},
    "When": {"type": "datetimepicker", "initial_date_time": 1767268800},
    "Colour": {"type": "static_select", "options": RED_BLUE, "initial_option": RED_BLUE[1]},
}
MODAL = {
    "type": "modal",
    "callback_id": "everything",
    "title": plain("Everything"),
    "submit": plain("Send"),
    "blocks": [
        *(
            {
                "type": "input",
                "block_id": label,
                "label": plain(label),
                "optional": label != "Name",
                "element": {"action_id": "it", **element},
            }
            for label, element in INPUTS.items()
        ),
    ],
}
FILLED = {
    "Name": {"value": "Ada"},
    "Story": {"value": "once more"},
    "When": {"selected_date_time": 1767268800},
    "Colour": {"selected_option": RED_BLUE[0]},
}


async def test_every_input_of_a_modal_is_filled_in_and_sent(
    person: Person, sandbox: Sandbox
) -> None:
    check_view(MODAL)
    view = sandbox.slack.workspace.open("U0OPERATOR", MODAL)
    modal = person.page.get_by_role("dialog", name="Everything")
    await expect(modal).to_be_visible()
    assert await violations(person) == []
    await modal.get_by_role("button", name="Send").click()
    name = modal.get_by_label("Name", exact=True)
    await expect(name).to_have_accessible_description("Please complete this required field.")
    await name.fill("Ada")
    await modal.get_by_label("Story", exact=True).fill("once more")
    await modal.get_by_label("Colour", exact=True).select_option("Red")
    await modal.get_by_role("button", name="Send").click()
    await sandbox.slack.until(lambda: view.values["Name"]["it"]["value"])
    stands = view_state(view)
    for label, value in FILLED.items():
        assert stands[label]["it"] == {"type": INPUTS[label]["type"], **value}
    await expect(modal).to_have_count(0)


async def test_a_button_opens_its_address_unless_it_would_run_in_the_page(
    person: Person, sandbox: Sandbox
) -> None:
    links = {"Look": f"{sandbox.url}/page/files/icon.svg", "Trap": "javascript:alert(1)"}
    buttons = [
        {"type": "button", "action_id": name, "text": plain(name), "url": address}
        for name, address in links.items()
    ]
    blocks = [{"type": "actions", "elements": buttons}]
    post_message(sandbox.slack.workspace, {"channel": "C0ALERTS", "text": "x", "blocks": blocks})
    await person.go_to("#alerts")
    async with person.page.expect_response("**/page/press"):
        await person.button("Trap").click()
    await expect(person.button("Trap")).not_to_have_attribute("aria-busy", "true")
    async with person.page.context.expect_page() as opened:
        await person.button("Look").click()
    look = await opened.value
    assert look.url == links["Look"]
    assert person.page.context.pages == [person.page, look]
    await look.close()


def numbers(*values: int) -> list[dict[str, Any]]:
    return [{"label": f"p{n}", "value": value} for n, value in enumerate(values)]


def chart(kind: str) -> dict[str, Any]:
    series = [{"name": "a", "data": numbers(1, 5, 3)}]
    axes = {"categories": ["p0", "p1", "p2"], "y_label": "calls"}
    return {
        "type": "data_visualization",
        "title": f"A {kind} chart",
        "chart": {"type": kind, "series": series, "axis_config": axes},
    }


async def test_every_block_of_a_message_is_drawn(person: Person, sandbox: Sandbox) -> None:
    rows = [
        [{"type": "raw_text", "text": f"r{row}c{column}"} for column in "ab"] for row in range(8)
    ]
    confirm = {
        "title": plain("Sure?"),
        "text": plain("Really"),
        "confirm": plain("Yes"),
        "deny": plain("No"),
    }
    press = {"type": "button", "action_id": "b", "text": plain("Press"), "confirm": confirm}
    menu = {"type": "overflow", "action_id": "o", "options": RED_BLUE}
    blocks = [
        {"type": "header", "text": plain("A header")},
        {"type": "section", "text": {"type": "mrkdwn", "text": "*b* _i_ ~s~ `c`\n> q\n```pre```"}},
        {"type": "section", "fields": [plain("one"), plain("two")], "accessory": menu},
        {"type": "table", "rows": rows},
        chart("bar"),
        {"type": "divider"},
        {"type": "context", "elements": [plain("small")]},
        {"type": "actions", "elements": [press]},
    ]
    check_message("x", blocks)
    post_message(sandbox.slack.workspace, {"channel": "C0ALERTS", "text": "x", "blocks": blocks})
    await person.go_to("#alerts")
    await expect(person.newest.get_by_role("cell", name="r7cb")).to_be_visible()
    await expect(person.newest.get_by_role("figure", name="A bar chart")).to_be_visible()
    assert await violations(person) == []
    await person.button("Press").click()
    question = person.page.get_by_role("dialog", name="Sure?")
    await question.get_by_role("button", name="No").click()
    await expect(question).to_have_count(0)
    await expect(person.button("Press")).to_be_focused()


async def test_overflow_menu_delivers_what_is_chosen(person: Person, sandbox: Sandbox) -> None:
    menu = {"type": "overflow", "action_id": "o", "options": RED_BLUE}
    section = {"type": "section", "text": plain("Which one"), "accessory": menu}
    message = {"channel": "C0ALERTS", "text": "x", "blocks": [section]}
    post_message(sandbox.slack.workspace, message)
    await person.go_to("#alerts")
    # The bot answers unknown buttons, so this message is not the newest for long.
    message_shown = person.log.get_by_role("article").filter(has_text="Which one")
    opener = message_shown.get_by_role("button", name="More actions").first
    await opener.focus()
    await person.page.keyboard.press("ArrowUp")
    await expect(person.page.get_by_role("menuitem", name="Blue")).to_be_focused()
    assert await violations(person) == []
    async with person.page.expect_request("**/page/press") as pressed:
        await person.page.keyboard.press("Enter")
    assert (await pressed.value).post_data_json["value"] == "blue"
    await expect(opener).to_be_focused()
