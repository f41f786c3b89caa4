"""Pages: which one a button asks for, and the buttons that turn them."""

from bot.ui import blocks
from bot.ui.message import SlackBlock


def page_of(value: str) -> int:
    """Read a button's value; anything unreadable is the first page."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < len("1000000") else 0


def turns(action_id: str, page: int, pages: int) -> list[SlackBlock]:
    """`Previous` and `Next`, where there is such a page; each has an action id of its own."""
    buttons: list[SlackBlock] = []
    if page > 0:
        buttons.append(blocks.button("Previous", f"{action_id}.previous", str(page - 1)))
    if page < pages - 1:
        buttons.append(blocks.button("Next", f"{action_id}.next", str(page + 1)))
    return buttons
