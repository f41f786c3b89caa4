"""Pages: the page number in a button's value, and the buttons that turn pages."""

from collections.abc import Callable

from bot.slack.messages import block_kit
from bot.slack.messages.message import SlackBlock


def page_of(value: str) -> int:
    """Read the page number from a button's value; 1 if unreadable."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < len("1000000") else 0


def turns(
    action_id: str, page: int, pages: int, value: Callable[[int], str] = str
) -> list[SlackBlock]:
    """Return `Previous` and `Next`, and `First` and `Last` when they are further away.

    Each button has its own action id. `value` builds a button's value from its page, if the value
    contains more than the page.
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
