"""The modals: the form of a change, and the reason of a denial. Views in, typed values out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.model.testusers.changes import MAX_REASON_CHARS, Flow
from bot.model.testusers.requests import Request
from bot.parsing.testusers_form import as_line
from bot.ui import block_kit, ids, text

# docs.slack.dev, static_select: at most 100 options.
PRESETS_SHOWN = 90


def change_form(
    reply_to: str,
    identities: Sequence[str] = (),
    *,
    presets: Sequence[str] = (),
    flow: Flow | None = None,
    kind: str = "add",
    duration: str = "",
) -> dict[str, Any]:
    """The form that `/testusers` alone opens.

    Args:
        reply_to: Where the answer goes.
        identities: What is filled in already, as many as fit.
        presets: The names of presets that there are.
        flow: Which one is chosen from the start.
        kind: `add` or `remove`, likewise.
        duration: For how long, likewise.
    """
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_FORM,
        "private_metadata": json.dumps({"reply_to": reply_to}),
        "title": _plain("Test users"),
        "submit": _plain("Request"),
        "close": _plain("Close"),
        "blocks": [
            _input(
                ids.TESTUSERS_FLOW,
                "Flow",
                _flow_select(flow),
                hint="Pick a flow, or paste its SID (FW…).",
            ),
            _input(ids.TESTUSERS_CHANGE, "Change", _change_select(presets, kind)),
            _input(
                ids.TESTUSERS_IDENTITIES,
                "Identities",
                _identities_input(identities),
                hint="One per line, e.g. +15550100 or whatsapp:+15550100.",
                is_optional=bool(presets),
            ),
            _input(
                ids.TESTUSERS_FOR,
                "For",
                _filled_in(_text_input(ids.TESTUSERS_FOR, 20), duration),
                hint="e.g. 30m, 2h or 3d. Leave empty for no end date.",
                is_optional=True,
            ),
            _input(
                ids.TESTUSERS_FROM,
                "From",
                _text_input(ids.TESTUSERS_FROM, 30),
                hint="e.g. 9:00, tomorrow 9:00 or 2026-12-01 09:00. Leave empty to start at once.",
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


def denial_form(request: Request, reply_to: str, page: str = "") -> dict[str, Any]:
    """Asks why a request is denied; `page` of the list that it was pressed in, if it was."""
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_DENIAL,
        "private_metadata": json.dumps({"reply_to": reply_to, "request": request.id, "page": page}),
        "title": _plain("Deny the request"),
        "submit": _plain("Deny"),
        "close": _plain("Back"),
        "blocks": [
            _input(
                ids.TESTUSERS_REASON,
                "Reason",
                _text_input(ids.TESTUSERS_REASON, MAX_REASON_CHARS, is_multiline=True),
                hint=text.plain(f"{request.requester.name} will see this reason.", 150),
            ),
        ],
    }


def flow_options(found: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The options of the type-ahead, of (shown, value)."""
    return [
        {"text": _plain(text.plain(shown, block_kit.OPTION_CHARACTERS)), "value": value}
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


def _identities_input(identities: Sequence[str]) -> dict[str, Any]:
    element = _text_input(ids.TESTUSERS_IDENTITIES, block_kit.INPUT_CHARACTERS, is_multiline=True)
    lines = list(map(as_line, identities))
    while len("\n".join(lines)) > block_kit.INPUT_CHARACTERS:
        lines.pop()
    return _filled_in(element, "\n".join(lines))


def _flow_select(flow: Flow | None) -> dict[str, Any]:
    select = {
        "type": "external_select",
        "action_id": ids.TESTUSERS_FLOW,
        "min_query_length": 0,
        "placeholder": _plain("Which flow?"),
    }
    chosen = flow_options([(flow.name, flow.name)]) if flow else []
    return {**select, "initial_option": chosen[0]} if chosen else select


def _filled_in(element: dict[str, Any], value: str) -> dict[str, Any]:
    return {**element, "initial_value": value} if value else element


def _change_select(presets: Sequence[str], kind: str) -> dict[str, Any]:
    """`Add`, `Add @preset` for each preset, and `Remove`."""
    adding = [(f"Add @{name}", f"add@{name}") for name in presets[:PRESETS_SHOWN]]
    options = flow_options([("Add", "add"), *adding, ("Remove", "remove")])
    return {
        "type": "static_select",
        "action_id": ids.TESTUSERS_CHANGE,
        "options": options,
        "initial_option": options[-1] if kind == "remove" else options[0],
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
