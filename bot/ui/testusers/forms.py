"""The modals: the form of a change, and the reason of a denial. Views in, typed values out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.model.requests import Request
from bot.model.testusers import MAX_REASON_CHARS
from bot.ui import ids, text

# docs.slack.dev, plain_text_input: max_length at most 3000.
INPUT_CHARACTERS = 3000
OPTION_CHARACTERS = 75


def change_form(reply_to: str) -> dict[str, Any]:
    """The form that `/testusers` alone opens; `reply_to` is where the answer goes."""
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_FORM,
        "private_metadata": json.dumps({"reply_to": reply_to}),
        "title": _plain("Test users"),
        "submit": _plain("Request"),
        "close": _plain("Close"),
        "blocks": [
            _input(ids.TESTUSERS_FLOW, "Flow", _flow_select(), hint="An alias, or paste a SID."),
            _input(ids.TESTUSERS_CHANGE, "Change", _change_select()),
            _input(
                ids.TESTUSERS_IDENTITIES,
                "Identities",
                _text_input(ids.TESTUSERS_IDENTITIES, INPUT_CHARACTERS, is_multiline=True),
                hint="One a line, such as +15550100 or whatsapp:+15550100.",
            ),
            _input(
                ids.TESTUSERS_FOR,
                "For",
                _text_input(ids.TESTUSERS_FOR, 20),
                hint="30m, 2h or 3d; without it there is no end.",
                is_optional=True,
            ),
            _input(
                ids.TESTUSERS_REASON,
                "Reason",
                _text_input(ids.TESTUSERS_REASON, MAX_REASON_CHARS),
                is_optional=True,
            ),
        ],
    }


def denial_form(request: Request, reply_to: str) -> dict[str, Any]:
    """Asks why a request is denied."""
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_DENIAL,
        "private_metadata": json.dumps({"reply_to": reply_to, "request": request.id}),
        "title": _plain("Deny the request"),
        "submit": _plain("Deny"),
        "close": _plain("Back"),
        "blocks": [
            _input(
                ids.TESTUSERS_REASON,
                "Reason",
                _text_input(ids.TESTUSERS_REASON, MAX_REASON_CHARS, is_multiline=True),
                hint=text.plain(f"{request.requester.name} gets it with the denial.", 150),
            ),
        ],
    }


def flow_options(found: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The options of the type-ahead, of (shown, value)."""
    return [
        {"text": _plain(text.plain(shown, OPTION_CHARACTERS)), "value": value}
        for shown, value in found
    ]


def _input(
    block_id: str,
    label: str,
    element: Mapping[str, Any],
    *,
    hint: str | None = None,
    is_optional: bool = False,
) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "input",
        "block_id": block_id,
        "label": _plain(label),
        "element": dict(element),
        "optional": is_optional,
    }
    return {**block, "hint": _plain(hint)} if hint else block


def _flow_select() -> dict[str, Any]:
    return {
        "type": "external_select",
        "action_id": ids.TESTUSERS_FLOW,
        "min_query_length": 0,
        "placeholder": _plain("Which flow?"),
    }


def _change_select() -> dict[str, Any]:
    options = [
        {"text": _plain("Add"), "value": "add"},
        {"text": _plain("Remove"), "value": "remove"},
    ]
    return {
        "type": "static_select",
        "action_id": ids.TESTUSERS_CHANGE,
        "options": options,
        "initial_option": options[0],
    }


def _text_input(action_id: str, limit: int, *, is_multiline: bool = False) -> dict[str, Any]:
    return {
        "type": "plain_text_input",
        "action_id": action_id,
        "multiline": is_multiline,
        "max_length": limit,
    }


def _plain(words: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": words, "emoji": False}
