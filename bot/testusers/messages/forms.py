"""The modals: the change form, and the form for a denial's reason."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import SlackBlock
from bot.slack.messages.help import ABOUT_TEST_USERS
from bot.testusers.messages.buttons import NOTHING, Prefilled
from bot.testusers.messages.phrases import change_of, who
from bot.testusers.parse.form import as_line, odd_line
from bot.testusers.parse.identities import phone_in
from bot.testusers.rules.changes import MAX_REASON_CHARS, Flow, identity_problem
from bot.testusers.rules.requests import Request

# docs.slack.dev, static_select: at most 100 options.
PRESETS_SHOWN = 90
NO_END = "Leave empty for no end date."


def change_form(
    reply_to: str,
    filled: Prefilled = NOTHING,
    *,
    flow: Flow | None = None,
    presets: Sequence[str] = (),
    longest: str = "",
    identities_block: str = ids.TESTUSERS_IDENTITIES,
) -> dict[str, Any]:
    """Return the form that `/testusers` opens.

    Args:
        reply_to: The destination of the answer.
        filled: The initial values, with as many identities as fit.
        flow: The preselected flow.
        presets: The names of all presets.
        longest: The longest access that the selected flow allows; "" for no limit.
        identities_block: The block id of the identities.
    """
    limit = f"At most {longest} on {flow.name}." if flow and longest else NO_END
    only_preset = " Required unless you add a preset." if presets else ""
    identities = _identities(filled)
    ends = f"Current end of access: {text.time(filled.ends_at)}." if filled.ends_at else ""
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_FORM,
        "private_metadata": json.dumps({"reply_to": reply_to}),
        "title": _plain("Test users"),
        "submit": _plain("Request"),
        "close": _plain("Close"),
        "blocks": [
            *([block_kit.section(ends)] if ends else []),
            _input(
                ids.TESTUSERS_FLOW,
                "Flow",
                _flow_select(flow),
                hint="Pick a flow, or paste its SID (FW…).",
            ),
            _input(ids.TESTUSERS_CHANGE, "Change", _change_select(presets, filled.kind)),
            _input(
                identities_block,
                "Identities",
                _text_input(
                    *(ids.TESTUSERS_IDENTITIES, block_kit.INPUT_CHARACTERS, identities),
                    is_multiline=True,
                ),
                hint=f"One per line, e.g. +15550100 or whatsapp:+15550100.{only_preset}",
                is_optional=bool(presets),
            ),
            *_doubt(identities),
            _input(
                ids.TESTUSERS_FOR,
                "For",
                _text_input(ids.TESTUSERS_FOR, 20, filled.duration),
                hint=text.plain(f"e.g. 30m, 2h or 3d. {limit}", 200),
                is_optional=True,
            ),
            _input(
                ids.TESTUSERS_FROM,
                "From",
                _picker(ids.TESTUSERS_FROM, filled.start),
                hint="Leave empty to start immediately.",
                is_optional=True,
            ),
            _input(
                ids.TESTUSERS_UNTIL,
                "Until",
                _picker(ids.TESTUSERS_UNTIL, filled.until),
                hint="Use this instead of “For”.",
                is_optional=True,
            ),
            _input(
                ids.TESTUSERS_REASON,
                "Reason",
                _text_input(ids.TESTUSERS_REASON, MAX_REASON_CHARS, filled.reason),
                is_optional=True,
            ),
            block_kit.context(ABOUT_TEST_USERS),
        ],
    }


def denial_form(request: Request, reply_to: str, page: str = "") -> dict[str, Any]:
    """Return the form that asks for a reason; `page` is the page of the list with the button."""
    asked = f"{who(request.requester)} wants to {change_of(request)}."
    return {
        "type": "modal",
        "callback_id": ids.TESTUSERS_DENIAL,
        "private_metadata": json.dumps({"reply_to": reply_to, "request": request.id, "page": page}),
        "title": _plain("Deny the request"),
        "submit": _plain("Deny"),
        "close": _plain("Back"),
        "blocks": [
            block_kit.section(asked),
            _input(
                ids.TESTUSERS_REASON,
                "Reason",
                _text_input(ids.TESTUSERS_REASON, MAX_REASON_CHARS, is_multiline=True),
                hint=text.plain(f"{request.requester.name} will see this reason.", 150),
            ),
        ],
    }


def flow_options(found: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the type-ahead's options from pairs of (shown, value)."""
    return [_option(shown, value) for shown, value in found]


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


def _doubt(identities: str) -> list[SlackBlock]:
    """Return the question about the first line that doesn't look like an identity."""
    odd = odd_line(identities)
    if not odd or identity_problem(odd):
        return []
    meant = phone_in(odd)
    asked = f"Did you mean {text.identity(meant)}?" if meant else f"Keep {text.identity(odd)}?"
    choices = {f"Yes, {meant}": meant} if meant else {}
    choices[f"Keep “{odd}” as typed"] = f'"{odd}"'
    buttons = [
        block_kit.button(label, f"{ids.TESTUSERS_WORD}.{number}", f"{odd}\n{line}")
        for number, (label, line) in enumerate(choices.items())
    ]
    return [block_kit.section(asked), block_kit.actions(*buttons)]


def _identities(filled: Prefilled) -> str:
    lines = [*map(as_line, filled.identities), *filled.unsure]
    while len("\n".join(lines)) > block_kit.INPUT_CHARACTERS:
        lines.pop()
    return "\n".join(lines)


def _flow_select(flow: Flow | None) -> dict[str, Any]:
    select = {
        "type": "external_select",
        "action_id": ids.TESTUSERS_FLOW,
        "min_query_length": 0,
        "placeholder": _plain("Which flow?"),
    }
    return {**select, "initial_option": _option(flow.name, flow.name)} if flow else select


def _picker(action_id: str, at: datetime | None = None) -> dict[str, Any]:
    picker: dict[str, Any] = {"type": "datetimepicker", "action_id": action_id}
    return {**picker, "initial_date_time": int(at.timestamp())} if at else picker


def _change_select(presets: Sequence[str], kind: str) -> dict[str, Any]:
    adding = [_option(f"Add @{name}", f"add@{name}") for name in presets[:PRESETS_SHOWN]]
    options = [_option("Add", "add"), *adding, _option("Remove", "remove")]
    chosen = next((option for option in options if option["value"] == kind), options[0])
    return {
        "type": "static_select",
        "action_id": ids.TESTUSERS_CHANGE,
        "options": options,
        "initial_option": chosen,
    }


def _option(shown: str, value: str) -> dict[str, Any]:
    return {"text": _plain(text.plain(shown, block_kit.OPTION_CHARACTERS)), "value": value}


def _text_input(
    action_id: str, limit: int, value: str = "", *, is_multiline: bool = False
) -> dict[str, Any]:
    element = {
        "type": "plain_text_input",
        "action_id": action_id,
        "multiline": is_multiline,
        "max_length": limit,
    }
    return {**element, "initial_value": value} if value else element


def _plain(words: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": words, "emoji": False}
