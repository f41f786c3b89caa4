"""The Block Kit blocks that we use, each within its limits (docs.slack.dev, Block Kit)."""

from collections.abc import Iterable, Sequence
from typing import Any

from bot.ui import text
from bot.ui.message import SlackBlock

SECTION_CHARACTERS = 3000
FIELD_CHARACTERS = 2000
HEADER_CHARACTERS = 150
BUTTON_CHARACTERS = 75
OPTION_CHARACTERS = 75
FIELDS_A_SECTION = 10
CONTEXT_CHARACTERS = 2000


def header(title: str) -> SlackBlock:
    """A heading; `title` may hold text from outside."""
    return {"type": "header", "text": _plain(title, HEADER_CHARACTERS)}


def section(markup: str, accessory: SlackBlock | None = None) -> SlackBlock:
    """A paragraph of finished markup."""
    block = {"type": "section", "text": _markup(markup, SECTION_CHARACTERS)}
    return {**block, "accessory": accessory} if accessory else block


def fields(pairs: Iterable[tuple[str, str]]) -> list[SlackBlock]:
    """Label and markup in two columns, ten to a section."""
    cells = [_markup(f"*{label}*\n{value}", FIELD_CHARACTERS) for label, value in pairs]
    starts = range(0, len(cells), FIELDS_A_SECTION)
    return [{"type": "section", "fields": cells[at : at + FIELDS_A_SECTION]} for at in starts]


def context(*markup: str) -> SlackBlock:
    """Small print."""
    return {"type": "context", "elements": [_markup(one, CONTEXT_CHARACTERS) for one in markup]}


def divider() -> SlackBlock:
    """A line."""
    return {"type": "divider"}


def button(
    label: str, action_id: str, value: str, *, style: str | None = None, spoken: str | None = None
) -> SlackBlock:
    """A button; `spoken` is read out instead of a label that does not speak for itself."""
    block: dict[str, Any] = {
        "type": "button",
        "text": _plain(label, BUTTON_CHARACTERS),
        "action_id": action_id,
        "value": value,
    }
    if style:
        block["style"] = style
    if spoken:
        block["accessibility_label"] = text.plain(spoken, BUTTON_CHARACTERS)
    return block


def select(placeholder: str, action_id: str, options: Sequence[tuple[str, str]]) -> SlackBlock:
    """A menu of (text, value)."""
    return {
        "type": "static_select",
        "action_id": action_id,
        "placeholder": _plain(placeholder, HEADER_CHARACTERS),
        "options": [
            {"text": _plain(label, OPTION_CHARACTERS), "value": value} for label, value in options
        ],
    }


def actions(*elements: SlackBlock) -> SlackBlock:
    """Buttons and menus in a row."""
    return {"type": "actions", "elements": list(elements)}


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> SlackBlock:
    """A table of plain texts, the first row its heading; columns in `right` align right."""
    settings = [{"align": "right" if at in right else "left"} for at in range(len(rows[0]))]
    cells = [[{"type": "raw_text", "text": text.plain(cell, 90)} for cell in row] for row in rows]
    return {"type": "table", "column_settings": settings, "rows": cells}


def _plain(value: str, limit: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": text.plain(value, limit), "emoji": False}


def _markup(markup: str, limit: int) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text.cut(markup, limit) or "–", "verbatim": True}
