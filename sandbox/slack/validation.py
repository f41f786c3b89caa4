"""Checks messages, modals and Home tabs against Slack's limits.

The limits come from Slack's Block Kit reference pages and from the checks in Slack's Python SDK.
Some checks are stricter than those in Slack, because Slack does not enforce all of its limits.
Slack should therefore accept any message, modal or Home tab that passes these checks.
"""

import json
from typing import Any

from sandbox.slack.checker import Checker, Rule
from sandbox.slack.data_blocks import data_visualization, table
from sandbox.slack.elements import INPUTS, PRESSED
from sandbox.slack.messages import Json
from sandbox.slack.refusals import Refusal, bad_blocks

MESSAGE_CHARACTERS = 12_000  # reported between 12,000 and 13,200: bolt-js issues 2509, 2867
POST_TEXT = 40_000
UPDATE_TEXT = 4_000
VIEW_BYTES = 250_000


def section(check: Checker, part: Json, at: str) -> None:
    """Check a section: its text, its fields and its accessory."""
    check.keys(part, at, "", "block_id text fields accessory expand")
    check.texts(part, at, plain=False, text=3000)
    if part.get("text") is None and not part.get("fields"):
        check.wrong("must define either text or fields", at)
    if part.get("fields") is not None:
        for place, found in check.items(part, at, "fields", 1, 10):
            check.text(found, place, 2000)
    if part.get("accessory") is not None:
        check.follow(PRESSED, part["accessory"], f"{at}/accessory", "element")


def header(check: Checker, part: Json, at: str) -> None:
    """Check a heading."""
    check.keys(part, at, "text", "block_id")
    check.texts(part, at, text=150)


def context(check: Checker, part: Json, at: str) -> None:
    """Check a context block, which shows up to ten texts in small print."""
    check.keys(part, at, "elements", "block_id")
    for place, element in check.objects(part, at, "elements", 1, 10):
        check.text(element, place, 3000)


def actions(check: Checker, part: Json, at: str) -> None:
    """Check a row of up to 25 elements, which must have different action_ids."""
    check.keys(part, at, "elements", "block_id")
    found = check.objects(part, at, "elements", 1, 25)
    for place, element in found:
        check.follow(PRESSED, element, place, "element")
    ids = [element.get("action_id") for _, element in found]
    if len(set(ids)) != len(ids):
        check.wrong("action_id must be unique within a block", f"{at}/elements")


def input_block(check: Checker, part: Json, at: str) -> None:
    """Check an input block, which has a label and an element to fill in."""
    check.keys(part, at, "label element", "block_id hint optional")
    check.texts(part, at, label=2000, hint=2000)
    check.flag(part, at, "optional")
    check.follow(INPUTS, part.get("element"), f"{at}/element", "element")


def divider(check: Checker, part: Json, at: str) -> None:
    """Check a divider."""
    check.keys(part, at, "", "block_id")


BLOCKS: dict[str, Rule] = {
    "actions": actions,
    "context": context,
    "data_visualization": data_visualization,
    "divider": divider,
    "header": header,
    "input": input_block,
    "section": section,
    "table": table,
}
# The blocks that the bot sends. Slack has more, which are refused here with a clear error.
SURFACES: dict[str, set[str]] = {
    "message": set(BLOCKS),
    "modal": set(BLOCKS) - {"data_visualization", "table"},
    "home": set(BLOCKS) - {"data_visualization", "table"},
}
MOST_BLOCKS = {"message": 50, "modal": 100, "home": 100}


def check_blocks(blocks: Any, surface: str) -> Checker:
    """Check every block on a surface. Return a checker that contains the problems found."""
    check = Checker(surface)
    allowed = {name: BLOCKS[name] for name in SURFACES[surface]}
    found = check.objects({"blocks": blocks}, "", "blocks", 0, MOST_BLOCKS[surface])
    for place, block in found:
        check.strings(block, place, block_id=255)
        check.follow(allowed, block, place, f"block in a {surface}")
    kinds = [str(block.get("type")) for _, block in found]
    if kinds.count("table") > 1:
        check.special.append("only_one_table_allowed")
    if kinds.count("data_visualization") > 2:
        check.wrong("no more than 2 data_visualization blocks allowed", "/blocks")
    ids = [block["block_id"] for _, block in found if block.get("block_id")]
    if len(set(ids)) != len(ids):
        check.wrong("block_id must be unique", "/blocks")
    return check


def check_message(
    text: Any, blocks: Any, *, most_text: int = POST_TEXT, whole: bool = True
) -> None:
    """Refuse a message if Slack would refuse it.

    Also refuse a message that has blocks but no `text`, although Slack would accept it.

    Args:
        text: The fallback text for notifications and screen readers.
        blocks: The message's blocks, or None.
        most_text: The maximum number of characters in `text` (4,000 for an update).
        whole: Whether to limit the length of the whole message. There is no limit on the total
            length of a message that is sent to a response_url.

    Raises:
        Refusal: The error name is `invalid_arguments`, `no_text`, `msg_too_long`,
            `invalid_blocks`, `only_one_table_allowed` or `msg_blocks_too_long`.
    """
    if text is not None and not isinstance(text, str):
        raise Refusal("invalid_arguments")
    if not text or not text.strip():
        raise Refusal("no_text")
    if len(text) > most_text:
        raise Refusal("msg_too_long")
    if not blocks:
        return
    check = check_blocks(blocks, "message")
    if check.special:
        raise bad_blocks(check.special, check.special[0])
    if check.problems:
        raise bad_blocks(check.problems)
    if whole and check.total > MESSAGE_CHARACTERS:
        raise Refusal("msg_blocks_too_long")


def check_view(view: Any) -> None:
    """Refuse a modal or a Home tab if Slack would refuse it.

    Raises:
        Refusal: The error name is `invalid_arguments` or `view_too_large`.
    """
    if not isinstance(view, dict):
        raise bad_blocks(
            ["[ERROR] must provide an object [json-pointer:/view]"], "invalid_arguments"
        )
    if len(json.dumps(view, ensure_ascii=False).encode()) > VIEW_BYTES:
        raise Refusal("view_too_large")
    surface = "home" if view.get("type") == "home" else "modal"
    check = check_blocks(view.get("blocks"), surface)
    check_home_frame(check, view) if surface == "home" else check_view_frame(check, view)
    if not view.get("blocks"):
        check.wrong("no less than 1 items allowed", "/view/blocks")
    if check.problems:
        raise bad_blocks(check.problems, "invalid_arguments")


def check_home_frame(check: Checker, view: Json) -> None:
    """Check everything in a Home tab except its blocks."""
    check.keys(view, "/view", "type blocks", "private_metadata callback_id")
    check_view_ids(check, view)


def check_view_ids(check: Checker, view: Json) -> None:
    """Check the private_metadata and the callback_id."""
    for key, most in {"private_metadata": 3000, "callback_id": 255}.items():
        if view.get(key):
            check.string(view[key], f"/view/{key}", most)


def check_view_frame(check: Checker, view: Json) -> None:
    """Check everything in a modal except its blocks."""
    check.keys(view, "/view", "type title blocks", "submit close private_metadata callback_id")
    check.choice(view, "/view", "type", {"modal"})
    check.texts(view, "/view", title=24, submit=24, close=24)
    check_view_ids(check, view)
    inputs = [
        b for b in view.get("blocks") or [] if isinstance(b, dict) and b.get("type") == "input"
    ]
    if inputs and not view.get("submit"):
        check.wrong("missing required field: submit", "/view")
