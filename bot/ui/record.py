"""Messages about the record: what was edited in the database, and the audit's head."""

from bot.ui import block_kit, text
from bot.ui.message import Message


def edited(noun: str, name: str) -> Message:
    """A row that decides was written by somebody else."""
    what = f"A {text.escape(noun)} isn't as Gatehouse wrote it: {text.code(name, 120)}"
    return _message(
        f":rotating_light: *Somebody edited the database.* {what}",
        "Gatehouse does nothing with it. Find out who can write to the database."
        " `python -m bot audit verify` lists all such rows.",
    )


def head(position: int, head: str) -> Message:
    """The audit's head, once a day: a witness outside the database."""
    entries = text.count(position, "entry", "entries")
    command = text.code(f"python -m bot audit verify --head {head}")
    return _message(
        f"Audit: {entries}, head {text.code(head)}. To check later that nothing up to here was"
        f" changed: {command}"
    )


def request_edited(request_id: str) -> Message:
    """What stands in the place of a request's card when the request was edited."""
    return _message(
        f":rotating_light: *This request was edited in the database, not by Gatehouse.* Nothing is"
        f" done with it. To make the change, please ask anew. (Request {text.code(request_id)})"
    )


def _message(*lines: str) -> Message:
    return Message("\n".join(lines), tuple(block_kit.section(line) for line in lines))
