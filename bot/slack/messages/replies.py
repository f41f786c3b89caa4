"""Messages shared by all commands: errors, usage, and "Working on it"."""

import re
from collections.abc import Sequence

from bot.errors import Ambiguous, GatehouseError, Unsent, UsageError
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
    return message.plus(*block_kit.row(buttons)) if buttons else message


def said(sentence: str) -> Message:
    """Return a message that contains only this sentence."""
    return Message(text.sentence(sentence, 1500))


def with_unsent(message: Message, unsent: Unsent, label: str) -> Message:
    """Add a button that opens the form with what was typed, and the texts that don't fit."""
    button = block_kit.button(label, ids.TESTUSERS_FILL, unsent.value, style="primary")
    return message.plus(block_kit.actions(button), lines=_to_copy(unsent.texts))


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
    return message.plus(block_kit.actions(block_kit.button("Try again", action_id, value)))
