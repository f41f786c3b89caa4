"""The stand-in accepts blocks and elements up to Slack's size limits, and refuses larger ones."""

from typing import Any

import pytest

from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import check_blocks, check_message, check_view

Block = dict[str, Any]


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def button(**more: Any) -> Block:
    return {"type": "button", "action_id": "a", "text": plain("Go")} | more


def actions(*elements: Block) -> Block:
    return {"type": "actions", "elements": list(elements)}


def options(count: int) -> list[Block]:
    return [{"text": plain(f"o{n}"), "value": str(n)} for n in range(count)]


def table(rows: int, cells: int, text: str = "x") -> Block:
    cell = {"type": "raw_text", "text": text}
    return {"type": "table", "rows": [[cell] * cells] * rows}


def chart(series: int = 1, points: int = 2, **more: Any) -> Block:
    names = [f"p{n}" for n in range(points)]
    data = [{"label": name, "value": 1} for name in names]
    body = {
        "type": "bar",
        "series": [{"name": f"s{n}", "data": data} for n in range(series)],
        "axis_config": {"categories": names},
    }
    return {"type": "data_visualization", "title": "t", "chart": body | more}


def select(**more: Any) -> Block:
    return {"type": "static_select", "action_id": "s", "options": options(2)} | more


def section(text: str, **more: Any) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}} | more


def labelled(element: Block, label: str = "l") -> Block:
    return {"type": "input", "label": plain(label), "element": element}


@pytest.mark.parametrize(
    "block",
    [
        section("x" * 3000),
        {"type": "section", "fields": [plain("x" * 2000)] * 10},
        section("x", accessory=button(style="danger")),
        {"type": "header", "text": plain("x" * 150)},
        {"type": "context", "elements": [plain("x")] * 10},
        {"type": "divider"},
        actions(*(button(action_id=str(n), text=plain("x" * 75)) for n in range(25))),
        actions(select(options=options(100))),
        actions({"type": "overflow", "action_id": "o", "options": options(5)}),
        table(100, 20),
        chart(points=20),
    ],
    ids=lambda block: str(block["type"]),
)
def test_a_block_within_the_limits_is_accepted(block: Block) -> None:
    assert check_blocks([block], "message").problems == []


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (section("x" * 3001), "/blocks/0/text/text"),
        (section(""), "/blocks/0/text/text"),
        ({"type": "section"}, "either text or fields"),
        ({"type": "section", "fields": [plain("x")] * 11}, "no more than 10"),
        ({"type": "section", "fields": [plain("x" * 2001)]}, "less than 2001"),
        ({"type": "header", "text": plain("x" * 151)}, "less than 151"),
        ({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}, "must be one of plain_text"),
        ({"type": "context", "elements": [plain("x")] * 11}, "no more than 10"),
        (actions(), "no less than 1"),
        (actions(*(button(action_id=str(n)) for n in range(26))), "no more than 25"),
        (actions(button(), button()), "action_id must be unique"),
        (actions(button(text=plain("x" * 76))), "less than 76"),
        (actions(button(value="x" * 2001)), "less than 2001"),
        (actions(button(action_id="x" * 256)), "less than 256"),
        (actions(button(style="red")), "must be one of danger, primary"),
        (actions(button(colour="red")), "additional property: colour"),
        (actions(button(confirm={"title": plain("t")})), "required field: text"),
        (actions(select(options=options(101))), "no more than 100"),
        (actions(select(options=options(1) * 2)), "duplicate option values"),
        (actions(select(initial_option=options(3)[2])), "not among the options"),
        (actions({"type": "overflow", "action_id": "o", "options": options(6)}), "than 5 items"),
        (actions({"type": "plain_text_input", "action_id": "p"}), "unsupported type"),
        (table(101, 1), "no more than 100"),
        (table(1, 21), "no more than 20"),
        (table(5, 5, "x" * 401), "10000 characters in a table"),
        (chart(series=2), "no more than 1"),
        (chart(points=21), "no more than 20"),
        (chart(axis_config={"categories": ["p0"]}), "exactly one point for each category"),
        ({"type": "video"}, "unsupported type: video block in a message"),
        ("text", "must provide an object"),
    ],
)
def test_a_block_beyond_a_limit_is_refused_with_its_place(block: Block, problem: str) -> None:
    problems = check_blocks([block], "message").problems
    assert any(problem in found for found in problems), problems


@pytest.mark.parametrize(
    ("blocks", "name"),
    [
        ([{"type": "divider"}] * 51, "invalid_blocks"),
        ([table(1, 1), table(1, 1)], "only_one_table_allowed"),
        ([chart()] * 3, "invalid_blocks"),
        ([{"type": "divider", "block_id": "b"}] * 2, "invalid_blocks"),
        ([section("x" * 3000)] * 4 + [section("x")], "msg_blocks_too_long"),
    ],
)
def test_a_message_as_a_whole_has_limits(blocks: list[Block], name: str) -> None:
    with pytest.raises(Refusal, match=name):
        check_message("text", blocks)


def test_the_limit_of_the_whole_does_not_hold_for_a_response_url() -> None:
    blocks = [section("x" * 3000)] * 5
    check_message("text", blocks, whole=False)
    with pytest.raises(Refusal, match="msg_blocks_too_long"):
        check_message("text", blocks)


def test_an_update_has_a_shorter_text() -> None:
    check_message("x" * 4001, None)
    with pytest.raises(Refusal, match="msg_too_long"):
        check_message("x" * 4001, None, most_text=4000)


def modal(**more: Any) -> Block:
    element = {"type": "plain_text_input", "action_id": "p"}
    return {
        "type": "modal",
        "title": plain("t"),
        "submit": plain("s"),
        "blocks": [labelled(element)],
    } | more


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (modal(title=plain("x" * 25)), "/view/title/text"),
        (modal(submit=None), "required field: submit"),
        (modal(blocks=[]), "no less than 1"),
        (modal(blocks=[{"type": "divider"}] * 101), "no more than 100"),
        (modal(blocks=[table(1, 1)]), "unsupported type: table block in a modal"),
        (modal(private_metadata="x" * 3001), "/view/private_metadata"),
        (modal(callback_id="x" * 256), "/view/callback_id"),
        (modal(colour="red"), "additional property: colour"),
        (modal(blocks=[labelled(select(), "x" * 2001)]), "less than 2001"),
    ],
)
def test_a_modal_beyond_a_limit_is_refused(view: Block, problem: str) -> None:
    with pytest.raises(Refusal, match="invalid_arguments") as caught:
        check_view(view)
    assert any(problem in found for found in caught.value.details["errors"])


def test_a_modal_that_is_too_large_is_refused() -> None:
    text = labelled({"type": "plain_text_input", "action_id": "p"})
    text["hint"] = plain("é" * 2000)
    text["label"] = plain("é" * 2000)
    with pytest.raises(Refusal, match="view_too_large"):
        check_view(modal(blocks=[text] * 100))
