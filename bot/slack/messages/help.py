"""The help for every command: the forms that the person can use, with examples."""

from collections.abc import Callable, Iterable, Sequence

from bot.commands import COMMANDS, GATEHOUSE, TESTUSERS, Command
from bot.permissions import LEAST_ROLE, Permission, Role
from bot.slack.messages import text
from bot.slack.messages.block_kit import Message
from bot.spelling import closest

ALIASES_SHOWN = 20
TITLE = "*What you can do*"
SHARING = (
    "Only you see the answers. `Share in channel` below some of them shows one to everyone in the"
    " channel, with identities masked."
)
ABOUT_TEST_USERS = (
    "Test users are the people who can try a flow's unpublished draft. Everyone else gets the"
    " published version."
)


May = Callable[[Permission], bool]


def meant_subcommand(command: str, typed: str) -> str | None:
    """Return the subcommand closest to a typo, or None if there's no typo or no close match."""
    known = {word for form in COMMANDS if form.name == command for word in form.subcommands}
    close = closest(typed, known) if typed.casefold() not in known else []
    return close[0] if close else None


def of_command(command: Command, aliases: Sequence[str], may: May) -> Message:
    """Return a command's help: the forms that the person can use, and forms for higher roles.

    The help for `/gatehouse` lists the forms of all commands. `aliases` are the names of flows.
    """
    if command is GATEHOUSE:
        return of_all(may)
    hints = []
    if command is TESTUSERS:
        known = aliases[:ALIASES_SHOWN] if may(Permission.READ) else ()
        named = ", ".join(text.escape(alias, 40) for alias in known)
        more = ", …" if len(known) < len(aliases) else ""
        flows = f"Flows: {named}{more} (or paste a SID)."
        hints = [
            flows if named else "Specify a flow by its name or SID.",
            "Durations: 30m, 2h, 3d. Times: 18:00, friday, tomorrow 9:00, 2026-12-01 09:00.",
            ABOUT_TEST_USERS,
            f"Example: {text.code(TESTUSERS.example('add'))}",
        ]
    chapters = [*_chapters([command], may), "\n".join(hints), *_others([command], may)]
    return _message([*filter(None, chapters)])


def of_all(may: May, title: str = TITLE) -> Message:
    """Return the help for all commands."""
    return _message([title, *_chapters(COMMANDS, may), *_others(COMMANDS, may)])


def _chapters(commands: Iterable[Command], may: May) -> list[str]:
    usable = [
        (command, [form for form in command.forms if may(form.permission)]) for command in commands
    ]
    return [
        "\n".join(
            (
                f"*{command.name}*",
                *(f"• {text.code(command.usage(form.kind))} – {form.does}" for form in forms),
            )
        )
        for command, forms in usable
        if forms
    ]


def _others(commands: Iterable[Command], may: May) -> list[str]:
    forms: dict[Role, list[str]] = {}
    for command in commands:
        for form in command.forms:
            if form.permission in LEAST_ROLE and not may(form.permission):
                role = LEAST_ROLE[form.permission]
                forms.setdefault(role, []).append(text.code(command.usage(form.kind)))
    lines = [f"{role.capitalize()}s can also use {', '.join(forms[role])}." for role in forms]
    return [" ".join(lines)] if lines else []


def _message(chapters: Sequence[str]) -> Message:
    return Message.of(*chapters[:1]).plus(lines=[*chapters[1:], SHARING])
