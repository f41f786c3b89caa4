"""`help` of every command: what the asker can type, what it does, and an example."""

from collections.abc import Callable, Iterable, Sequence

from bot.commands import COMMANDS, TESTUSERS, Command, Form
from bot.model.spelling import closest
from bot.permissions import LEAST_ROLE, Permission, Role
from bot.ui import block_kit, text
from bot.ui.message import Message

ALIASES_SHOWN = 20


May = Callable[[Permission], bool]


def meant_subcommand(command: str, typed: str) -> str | None:
    """Return the subcommand that was probably meant; None where it is one, or like none."""
    known = {word for one in COMMANDS if one.name == command for word in one.subcommands}
    close = closest(typed, known) if typed.casefold() not in known else []
    return close[0] if close else None


def of_command(command: Command, may: May, hints: Sequence[str] = ()) -> Message:
    """The forms of one command that the asker can use; one line names the others.

    `hints` are lines of finished markup about what stands in their brackets.
    """
    others = _others([command], may)
    return _message([*_chapters([command], may), *(["\n".join(hints)] if hints else []), *others])


def of_testusers(may: May, aliases: Sequence[str]) -> Message:
    """The forms of `/testusers`, and the flows that there are, for who may know them."""
    known = aliases[:ALIASES_SHOWN] if may(Permission.READ) else ()
    named = ", ".join(text.escape(alias, 40) for alias in known)
    more = ", …" if len(known) < len(aliases) and known else ""
    hints = (
        f"Flows: {named}{more} (or paste a SID)." if named else "A flow is a name or a SID.",
        "Durations: 30m, 2h, 3d.",
        f"Example: {text.code(TESTUSERS.example('add'))}",
    )
    return of_command(TESTUSERS, may, hints)


def of_all(may: May) -> Message:
    """The forms of every command."""
    return _message(["*What you can do*", *_chapters(COMMANDS, may), *_others(COMMANDS, may)])


def _chapters(commands: Iterable[Command], may: May) -> list[str]:
    """A paragraph for each command of which the asker can use a form."""
    usable = [
        (command, [form for form in command.forms if may(form.permission)]) for command in commands
    ]
    return [
        "\n".join((f"*{command.name}*", *(_line(command, form) for form in forms)))
        for command, forms in usable
        if forms
    ]


def _line(command: Command, form: Form) -> str:
    return f"• {text.code(command.usage(form.kind))} – {form.does}"


def _others(commands: Iterable[Command], may: May) -> list[str]:
    """At most one line: the forms that need a higher role, by role."""
    forms: dict[Role, list[str]] = {}
    for command in commands:
        for form in command.forms:
            if form.permission in LEAST_ROLE and not may(form.permission):
                role = LEAST_ROLE[form.permission]
                forms.setdefault(role, []).append(text.code(command.usage(form.kind)))
    lines = [f"{role.capitalize()}s can also use {', '.join(forms[role])}." for role in forms]
    return [" ".join(lines)] if lines else []


def _message(chapters: Sequence[str]) -> Message:
    return Message("\n".join(chapters), [block_kit.section(chapter) for chapter in chapters])
