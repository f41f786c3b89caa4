"""`help` of every command: what it does, an example, and whether the asker may."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.permissions import LEAST_ROLE, Permission
from bot.ui import blocks, text
from bot.ui.message import TEXT_CHARACTERS, Message

ALIASES_SHOWN = 20


@dataclass(frozen=True)
class Line:
    """One form of a command."""

    usage: str
    does: str
    permission: Permission


HELP: Mapping[str, Sequence[Line]] = {
    "/orgs": (
        Line("/orgs", "all organizations, a page at a time", Permission.READ),
        Line(
            "/orgs <text>", "those with the text in name, id, contact or currency", Permission.READ
        ),
        Line("/orgs show <id or name>", "every field of one", Permission.READ),
        Line("/orgs refresh", "list them anew from the service", Permission.REFRESH),
    ),
    "/ratelimits": (
        Line(
            "/ratelimits",
            "every organization's use against its limits, worst first",
            Permission.READ,
        ),
        Line("/ratelimits <org>", "one, with the last 24 hours by hour", Permission.READ),
        Line("/ratelimits check <org>", "one real call that names it", Permission.REFRESH),
        Line("/ratelimits plan <org> <plan>", "set its plan", Permission.SET_PLAN),
    ),
    "/testusers": (
        Line("/testusers", "ask for a change in a form", Permission.REQUEST),
        Line(
            "/testusers list <flow>",
            "who may test it, granted by whom, until when",
            Permission.READ,
        ),
        Line(
            "/testusers add <flow> <identity>… [for <duration>] [because <reason>]",
            "ask to add people",
            Permission.REQUEST,
        ),
        Line(
            "/testusers remove <flow> <identity>… [because <reason>]",
            "ask to remove people",
            Permission.REQUEST,
        ),
        Line("/testusers … now because <reason>", "apply without approval", Permission.OVERRIDE),
        Line("/testusers history <flow>", "what was changed, by whom", Permission.READ),
        Line("/testusers requests", "what waits for approval", Permission.READ),
    ),
    "/emailkey": (
        Line("/emailkey check [resource]", "whether the key works", Permission.READ),
        Line("/emailkey templates", "the templates it can read", Permission.READ),
    ),
    "/gatehouse": (
        Line("/gatehouse help", "this", Permission.ASK_FOR_HELP),
        Line(
            "/gatehouse whoami",
            "who you are to the bot, and what you may do",
            Permission.ASK_FOR_HELP,
        ),
        Line("/gatehouse status", "whether everything works", Permission.READ),
        Line("/gatehouse audit [n]", "the newest entries of the audit", Permission.READ_AUDIT),
    ),
}


def of_command(
    command: str, may: Callable[[Permission], bool], hints: Sequence[str] = ()
) -> Message:
    """The forms of one command; those that the asker may not use say who may.

    `hints` are lines of finished markup about what stands in their brackets.
    """
    return _message([_chapter(command, may), *(["\n".join(hints)] if hints else [])])


def of_testusers(
    may: Callable[[Permission], bool], aliases: Sequence[str], example: str
) -> Message:
    """The forms of `/testusers`, and the flows that there are, for who may know them."""
    known = aliases[:ALIASES_SHOWN] if may(Permission.READ) else ()
    named = ", ".join(text.escape(one, 40) for one in known)
    more = ", …" if len(known) < len(aliases) and known else ""
    hints = (
        f"Flows: {named}{more}, or a SID." if named else "A flow is an alias or a SID.",
        "`for` takes 30m, 2h or 3d.",
        f"Example: {text.code(example)}",
    )
    return of_command("/testusers", may, hints)


def of_all(may: Callable[[Permission], bool]) -> Message:
    """The forms of every command."""
    chapters = [_chapter(command, may) for command in HELP]
    return _message(["*What Gatehouse can do for you*", *chapters])


def _chapter(command: str, may: Callable[[Permission], bool]) -> str:
    lines = [_line(line, allowed=may(line.permission)) for line in HELP[command]]
    return "\n".join((f"*{command}*", *lines))


def _line(line: Line, *, allowed: bool) -> str:
    usage = text.code(line.usage)
    role = LEAST_ROLE.get(line.permission)
    note = "" if allowed or role is None else f" _(needs the role {role})_"
    return f"• {usage} {line.does}{note}"


def _message(chapters: Sequence[str]) -> Message:
    whole = text.cut("\n".join(chapters), TEXT_CHARACTERS)
    return Message(whole, [blocks.section(chapter) for chapter in chapters])
