"""Handles commands sent by direct message or by a button, and unknown commands and buttons."""

from dataclasses import replace
from functools import partial

from bot.app import Gatehouse
from bot.errors import NotFound
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from bot.slack.replies import DirectReplies
from handlers.answering import Answering
from handlers.listeners import (
    ANYTHING,
    LISTENERS,
    Answer,
    Context,
    Interaction,
    Listener,
    Place,
    helped,
    listens,
)

# Messages from people have one of these subtypes. Edits and deletions have other subtypes.
PLAIN_SUBTYPES = frozenset({None, "file_share", "me_message", "thread_broadcast"})
FORMATTING = "`*_~"
WHAT_TO_SEND = "You can send me these commands, with or without the slash:"
OUTDATED = "This button is from an older version of Gatehouse and no longer works."


@listens("event", "message", None, place=Place.NOWHERE)
async def written(context: Context) -> None:
    """Answer a direct message, unless a process has already answered it or is answering it."""
    bot, interaction, event = context.bot, context.interaction, context.interaction.event
    is_from_person = bool(
        interaction.slack_user_id
        and interaction.event_id
        and event.get("channel_type") == "im"
        and event.get("subtype") in PLAIN_SUBTYPES
        and not event.get("bot_id")
        and not event.get("edited")
    )
    if is_from_person and await bot.received.claim(interaction.event_id):
        bot.tasks.start(_respond(bot, interaction), "message")


async def _respond(bot: Gatehouse, message: Interaction) -> None:
    typed = _unformatted(message.text)
    first = next(iter(typed.split(maxsplit=1)), "")
    text = typed.removeprefix(first).strip()
    name = f"/{first.lstrip('/').casefold()}"
    answer: Answer
    if found := LISTENERS.get(("command", name)):
        answer = found.answer
    else:
        name = "message"
        answer = partial(helped, show=partial(help_ui.of_all, title=WHAT_TO_SEND))
    event_id, thread_ts = message.event_id, message.event.get("thread_ts")
    port = DirectReplies(bot.slack, bot.clock, message.channel_id, thread_ts, event_id)
    listener = Listener("command", name, None, answer, Place.NEW)
    await Answering(bot, listener, replace(message, name=name, text=text), port).run()
    await bot.received.answered(event_id)


def _unformatted(text: str) -> str:
    """Return the text without the marks of formatting that applies to all of it."""
    plain = text.strip()
    while len(plain) > 1 and plain[0] == plain[-1] and plain[0] in FORMATTING:
        plain = plain[1:-1].strip()
    return plain


@listens("action", ids.RUN_COMMAND, None, place=Place.CLICKED)
async def run_command(context: Context) -> Message | None:
    """Run the command in a button's value after checking the permission for the command."""
    name, _, text = context.value.partition(" ")
    command = LISTENERS.get(("command", name))
    if command is None:
        raise NotFound(OUTDATED)
    typed = replace(context.interaction, name=name, text=text)
    answer: Message | None = await command.answer(replace(context, interaction=typed))
    return answer


@listens("action", ANYTHING, None)
async def outdated(_: Context) -> Message:
    """Tell the person that the clicked button or menu no longer works."""
    return Message(OUTDATED)


@listens("command", ANYTHING, None, place=Place.NEW)
async def no_such_command(_: Context) -> Message:
    """Answer a command that exists in the Slack app's manifest but not in this version."""
    return Message("Unknown command. Try `/gatehouse help`.")
