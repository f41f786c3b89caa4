"""The modals for requesting a change and for giving the reason for a denial."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.flows.rules import Flow
from bot.slack.messages import block_kit, ids
from bot.slack.messages.block_kit import SlackBlock
from bot.slack.messages.replies import ABOUT_TEST_USERS
from bot.testusers.messages.phrases import Show, asker, change_of
from bot.testusers.parse.command import FOR_CHARACTERS, Prefilled, ShownRequest, as_line
from bot.testusers.rules.requests import MAX_REASON_CHARS, Request

Json = dict[str, Any]


def change_form(
    reply_to: str,
    filled: Prefilled,
    *,
    flow: Flow | None = None,
    needs_reason: bool = False,
    is_below: bool = False,
) -> Json:
    """Return the form that `/testusers` opens.

    Args:
        reply_to: The response_url for the reply, or an empty string.
        filled: The initial values, which fit into a button.
        flow: The flow, if it's known. Otherwise, the form refuses the typed name.
        needs_reason: True if changes to the flow need a reason.
        is_below: True if the reply appears below the message that the form was opened from.
    """
    lines = "\n".join([*map(as_line, filled.identities), *filled.lines])
    flows: Json = {
        "type": "external_select",
        "min_query_length": 0,
        "placeholder": block_kit.plain_text("Which flow?"),
    }
    if name := flow.name if flow else filled.flow:
        flows["initial_option"] = block_kit.option(name, name)
    add, remove = (block_kit.option(kind.capitalize(), kind) for kind in ("add", "remove"))
    changes: Json = {
        "type": "static_select",
        "options": [add, remove],
        "initial_option": remove if filled.kind == "remove" else add,
    }
    until: Json = {"type": "datetimepicker"}
    if isinstance(filled.until, datetime):
        until["initial_date_time"] = int(filled.until.timestamp())
    blocks = [
        _input(ids.TESTUSERS_FLOW, "Flow", flows, "Pick a flow, or paste its SID (FW…)."),
        _input(ids.TESTUSERS_CHANGE, "Change", changes),
        _input(
            ids.TESTUSERS_IDENTITIES,
            "Identities",
            _text_input(block_kit.INPUT_CHARACTERS, lines, is_multiline=True),
            "One per line, e.g. +15550100, whatsapp:+15550100 or @preset.",
        ),
        _input(
            ids.TESTUSERS_FOR,
            "For",
            _text_input(FOR_CHARACTERS, filled.duration),
            "e.g. 30m, 2h or 3d. Leave empty for no end date.",
            is_optional=True,
        ),
        _input(ids.TESTUSERS_UNTIL, "Until", until, "Use this instead of “For”.", is_optional=True),
        _input(
            ids.TESTUSERS_REASON,
            "Reason",
            _text_input(MAX_REASON_CHARS, filled.reason),
            is_optional=not needs_reason,
        ),
        block_kit.context(ABOUT_TEST_USERS),
    ]
    answer = {"reply_to": reply_to, "below": "yes" if is_below else ""}
    return _modal(ids.TESTUSERS_FORM, "Test users", "Request", blocks, answer)


def denial_form(request: Request, reply_to: str, show: Show) -> Json:
    """Return the form for denying a request."""
    reason = _input(
        ids.TESTUSERS_REASON,
        "Reason",
        _text_input(MAX_REASON_CHARS, is_multiline=True),
        f"{request.requester.name} will see this reason.",
    )
    asked = block_kit.section(f"{asker(request)} wants to {change_of(request, show)}.")
    value = ShownRequest(request.id, request.requested.card_version).value()
    answer = {"reply_to": reply_to, "request": value}
    return _modal(ids.TESTUSERS_DENIAL, "Deny the request", "Deny", [asked, reason], answer)


def _modal(
    callback_id: str,
    title: str,
    submit: str,
    blocks: Sequence[SlackBlock],
    hidden: Mapping[str, str],
) -> Json:
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": json.dumps(hidden),
        "title": block_kit.plain_text(title),
        "submit": block_kit.plain_text(submit),
        "close": block_kit.plain_text("Close"),
        "blocks": [*blocks],
    }


def _input(
    action_id: str,
    label: str,
    element: SlackBlock,
    hint: str = "",
    *,
    is_optional: bool = False,
) -> SlackBlock:
    block = {
        "type": "input",
        "block_id": action_id,
        "label": block_kit.plain_text(label),
        "element": {**element, "action_id": action_id},
        "optional": is_optional,
    }
    return {**block, "hint": block_kit.plain_text(hint, 200)} if hint else block


def _text_input(limit: int, value: str = "", *, is_multiline: bool = False) -> SlackBlock:
    element = {"type": "plain_text_input", "multiline": is_multiline, "max_length": limit}
    return {**element, "initial_value": value} if value else element
