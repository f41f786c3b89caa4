"""The `/gatehouse` command: its parser, and the answer to `whoami`.

The answers to `status` and `audit` are in `bot/checks` and `bot/audit`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bot.commands import GATEHOUSE
from bot.permissions import LEAST_ROLE, Permission, Person, Role
from bot.slack.messages import text
from bot.slack.messages.block_kit import Message
from bot.slack.parse import asks_for_help, unknown, words_of
from bot.spelling import visible

COUNTS = {str(count): count for count in range(1, 51)}


@dataclass(frozen=True)
class GatehouseRequest:
    """A parsed `/gatehouse` command. `count` is the number of audit entries to show."""

    form: Literal["help", "whoami", "status", "audit"]
    count: int = 10


def parse_gatehouse(typed: str) -> GatehouseRequest:
    """Parse the text after `/gatehouse`. Empty text means help."""
    words = words_of(typed, GATEHOUSE)
    if not words or asks_for_help(words):
        return GatehouseRequest("help")
    match [word.keyword for word in words]:
        case ["whoami" | "status" | "audit" as form]:
            return GatehouseRequest(form)
        # Compare the text as typed, because keywords lose their leading dashes.
        case ["audit", _] if (count := visible(words[1].text)) in COUNTS:
            return GatehouseRequest("audit", COUNTS[count])
        case ["audit", *_]:
            raise GATEHOUSE.misuse("Choose 1 to 50 entries.", "audit")
    raise unknown(GATEHOUSE, words)


def whoami(
    person: Person, may: Callable[[Permission], bool], without_access: str | None = None
) -> Message:
    """Return the answer to `whoami`: the person's roles and permissions.

    `without_access` is a sentence to show instead if the person has no access to Gatehouse.
    """
    who = f"You are *{text.escape(person.name, 80)} ({person.slack_user_id})*."
    if without_access:
        return Message.of(f"{who} {text.sentence(without_access, 1500)}")
    roles = [role for role in Role if role in person.roles]
    label = "Your roles" if len(roles) > 1 else "Your role"
    lines = [f"{who} {label}: *{', '.join(roles) or 'none'}*."]
    if person.doubt:
        lines.append(f":warning: {text.sentence(person.doubt)}")
    allowed = [permission for permission in LEAST_ROLE if may(permission)]
    if allowed:
        lines += ["You can:", *(f"• {permission}" for permission in allowed)]
    else:
        # Policies name people without a role, too.
        lines.append(f"You can {Permission.DECIDE} to test users of some flows.")
    return Message.of(*lines)
