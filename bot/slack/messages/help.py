"""The help for every command: the forms that the person can use, with examples."""

from collections.abc import Callable, Iterable, Sequence

from bot.commands import COMMANDS, GATEHOUSE, RATELIMITS, TESTUSERS, Command
from bot.permissions import Permission
from bot.slack.messages import text
from bot.slack.messages.block_kit import Message

TITLE = "*What you can do*"
NOTHING = "You don't have access to this command."
SHARING = (
    "Only you can see the answers. To show an answer to everyone in the channel, press `Share in"
    " channel` below it. The shared answer masks identities."
)
ABOUT_TEST_USERS = (
    "Test users are the people who can try a flow's unpublished draft. Everyone else gets the"
    " published version."
)
HINTS = (
    "Specify a flow by its name or SID.",
    "Durations: 30m, 2h, 3d. Times: 18:00, friday, tomorrow 9:00, 2026-12-01 09:00.",
    ABOUT_TEST_USERS,
    f"Example: {text.code(TESTUSERS.example('add'))}",
)
MOST_USED = ((TESTUSERS, "add"), (TESTUSERS, "list"), (RATELIMITS, "one"))


May = Callable[[Permission], bool]


def of_command(command: Command, may: May) -> Message:
    """Return a command's help: the forms that the person can use.

    The help for `/gatehouse` lists the forms of all commands.
    """
    if command is GATEHOUSE:
        return of_all(may)
    hints = HINTS if command is TESTUSERS else ()
    return _message([*_chapters([command], may), *hints] or [NOTHING])


def of_all(may: May, title: str = TITLE) -> Message:
    """Return the help for all commands. The most used ones stand first."""
    used = [command.usage(kind) for command, kind in MOST_USED if may(command.permission(kind))]
    first = [f"Most used: {', '.join(map(text.code, used))}"] if used else []
    return _message(["\n".join([title, *first]), *_chapters(COMMANDS, may)])


def _chapters(commands: Iterable[Command], may: May) -> list[str]:
    chapters = []
    for command in commands:
        forms = [form for form in command.forms if may(form.permission)]
        lines = [f"• {text.code(command.usage(form.kind))} – {form.does}" for form in forms]
        if lines:
            chapters.append("\n".join([f"*{command.name}*", *lines]))
    return chapters


def _message(chapters: Sequence[str]) -> Message:
    return Message.of(*chapters[:1]).plus(lines=[*chapters[1:], SHARING])
