"""Messages shared by all commands: help, errors, usage, and "Working on it"."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from bot.commands import COMMANDS, GATEHOUSE, RATELIMITS, TESTUSERS, Command
from bot.errors import Ambiguous, GatehouseError, Unsent, UsageError
from bot.permissions import Permission
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import Message
from bot.slack.parse import escaped, recover
from bot.spelling import DOUBLE_QUOTES

WORKING = Message("Working on it…")
STOPPED = Message(
    "Gatehouse was restarted before it could answer. Please try again in a moment. Any"
    " changes already made are kept."
)
DONE = Message("Done.")
BUTTONS = 5
# Longer commands are shown again if an error leaves no button that repeats them.
SHORT_COMMAND = 40
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


def sorry(error: GatehouseError) -> Message:
    """Return a message with an expected error, and the correct usage or the possible matches."""
    markup = text.sentence(error.sentence, 1500)
    if isinstance(error, UsageError):
        markup += f"\nUsage: {text.code(error.usage)}\nExample: {text.code(error.example)}"
    if isinstance(error, Ambiguous):
        markup += "".join(f"\n• {text.escape(label)}" for label in error.choices.values())
    return Message.of(markup)


def with_next_steps(message: Message, error: GatehouseError, command: str) -> Message:
    """Add buttons for the closest words. If there are none, add `Try again` for temporary errors.

    `command` is the command as typed, including the slash. If no button can repeat it, it's shown.
    """
    steps = []
    name, _, typed = command.partition(" ")
    # A word ends at a space, a comma or a quotation mark, so part of another is never replaced.
    end = rf"[^\s,{DOUBLE_QUOTES}]"
    wrong = rf"(?<!{end}){re.escape(escaped(error.unknown))}(?!{end})"
    if error.closest and (place := re.search(wrong, typed, re.IGNORECASE)):
        for word, label in error.closest.items():
            rather = f"{name} {typed[: place.start()]}{word}{typed[place.end() :]}"
            steps.append((label or rather, rather))
    if not steps and error.is_passing:
        steps = [("Try again", command)]
    is_kept = steps and len(command) <= block_kit.VALUE_CHARACTERS
    if not (is_kept or error.unsent) and len(command) > SHORT_COMMAND:
        return message.plus(lines=_to_copy([recover(command)]))
    return with_commands(message, steps)


def with_commands(message: Message, steps: Sequence[tuple[str, str]]) -> Message:
    """Add a button for each (label, command) pair. Clicking a button runs its command."""
    buttons = [
        block_kit.button(label, f"{ids.RUN_COMMAND}.{number}", command)
        for number, (label, command) in enumerate(steps[:BUTTONS])
        if len(command) <= block_kit.VALUE_CHARACTERS
    ]
    return message.with_buttons(*buttons)


def said(sentence: str) -> Message:
    """Return a message that contains only this sentence."""
    return Message(text.sentence(sentence, 1500))


def with_unsent(message: Message, unsent: Unsent, label: str) -> Message:
    """Add a button that opens the form with what was typed, and the texts that don't fit."""
    button = block_kit.button(label, ids.TESTUSERS_FILL, unsent.value, style="primary")
    return message.plus(lines=_to_copy(unsent.texts)).with_buttons(button)


def _to_copy(texts: Sequence[str]) -> list[str]:
    """Return paragraphs that show all of these texts, for people to copy."""
    if not texts:
        return []
    return ["To copy:", *block_kit.preformatted("\n\n".join(texts))]


def choice(several: Ambiguous, action_id: str) -> Message:
    """Return a message with a menu that asks which of several matches the person meant."""
    options = [(label, value) for value, label in several.choices.items()]
    menu = block_kit.select("Pick an organization…", action_id, options)
    question = block_kit.section(text.sentence(several.sentence, 1500))
    return Message(sorry(several).text, (question, block_kit.actions(menu)))


def broken(reference: str) -> Message:
    """Report an unexpected error, with a reference for finding the error in the log."""
    return Message(
        "Something went wrong. If it keeps happening, contact whoever runs Gatehouse. Reference: "
        f"`{reference}`"
    )


def with_retry(message: Message, action_id: str, value: str) -> Message:
    """Add a `Try again` button that repeats the click."""
    return message.with_buttons(block_kit.button("Try again", action_id, value))


def help_of(command: Command, may: May) -> Message:
    """Return a command's help: the forms that the person can use.

    The help for `/gatehouse` lists the forms of all commands.
    """
    if command is GATEHOUSE:
        return help_of_all(may)
    hints = HINTS if command is TESTUSERS else ()
    return _message([*_chapters([command], may), *hints] or [NOTHING])


def help_of_all(may: May, title: str = TITLE) -> Message:
    """Return the help for all commands. The most used ones stand first."""
    used = [command.usage(kind) for command, kind in MOST_USED if may(command.permission(kind))]
    first = [f"Most used: {', '.join(map(text.code, used))}"] if used else []
    return _message(["\n".join([title, *first]), *_chapters(COMMANDS, may)])


def _chapters(commands: Iterable[Command], may: May) -> Iterator[str]:
    for command in commands:
        forms = [form for form in command.forms if may(form.permission)]
        lines = [f"• {text.code(command.usage(form.kind))} – {form.does}" for form in forms]
        if lines:
            yield "\n".join([f"*{command.name}*", *lines])


def _message(chapters: Sequence[str]) -> Message:
    return Message.of(*chapters[:1]).plus(lines=[*chapters[1:], SHARING])
