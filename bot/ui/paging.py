"""Pages: which one a button asks for, and the buttons that turn them."""

from collections.abc import Callable, Mapping
from typing import Any

from bot.ui import block_kit
from bot.ui.message import SlackBlock


def page_of(value: str) -> int:
    """Read a button's value; anything unreadable is the first page."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < len("1000000") else 0


def page_in(data: Mapping[str, Any]) -> int:
    """Read the page, `p`, of a button's value that holds more; see `page_of`."""
    return page_of(str(data["p"]))


def turns(
    action_id: str, page: int, pages: int, value: Callable[[int], str] = str
) -> list[SlackBlock]:
    """`Previous` and `Next`, and `First` and `Last` where those are further away.

    Each has an action id of its own. `value` makes a button's value of the page that it turns to,
    where it holds more than that.
    """
    last = pages - 1
    turned = (
        ("First", 0, page > 1),
        ("Previous", page - 1, page > 0),
        ("Next", page + 1, page < last),
        ("Last", last, page < last - 1),
    )
    return [
        block_kit.button(label, f"{action_id}.{label.lower()}", value(to))
        for label, to, is_there in turned
        if is_there
    ]
