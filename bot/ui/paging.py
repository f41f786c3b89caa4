"""Pages: which one a button asks for, and the buttons that turn them."""

from collections.abc import Callable

from bot.ui import blocks
from bot.ui.message import SlackBlock


def page_of(value: str) -> int:
    """Read a button's value; anything unreadable is the first page."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < len("1000000") else 0


def turns(
    action_id: str, page: int, pages: int, value: Callable[[int], str] = str
) -> list[SlackBlock]:
    """`Previous` and `Next`, where there is such a page; each has an action id of its own.

    `value` makes a button's value of the page that it turns to, where it holds more than that.
    """
    turned = (("Previous", "previous", page - 1), ("Next", "next", page + 1))
    return [
        blocks.button(label, f"{action_id}.{name}", value(to))
        for label, name, to in turned
        if 0 <= to < pages
    ]
