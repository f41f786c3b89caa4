"""Commands without a slash, from direct messages and buttons, and unknown commands."""

from dataclasses import replace
from functools import partial

from bot.errors import NotFound
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from bot.slack.replies import DirectReplies
from handlers.answering import Answering
from handlers.listeners import ANYTHING, LISTENERS, Context, Listener, Place, helped, listens

# People's messages have no subtype or the file subtype; edits and deletions have others.
PLAIN_SUBTYPES = frozenset({None, "file_share"})
FORMATTING = "`*_~"
HELP = frozenset({"help", "?", "what can you do"})
NOT_UNDERSTOOD = "I didn't understand that. Here's what you can ask me, without a slash:"
OUTDATED = "This button is from an older version of Gatehouse and no longer works."


@listens("event", "message", None, place=Place.NOWHERE)
async def written(context: Context) -> None:
    """Claim the direct message, and answer the command in it."""
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
        bot.tasks.start(_respond(context), "message")


async def _respond(context: Context) -> None:
    bot, message = context.bot, context.interaction
    typed = message.text.strip().strip(FORMATTING)
    first, text = (*typed.split(maxsplit=1), "", "")[:2]
    name = f"/{first.lstrip('/').casefold()}"
    if listener := LISTENERS.get(("command", name)):
        message, answer = replace(message, name=name, text=text), listener.answer
    else:
        is_help = typed.casefold().strip(" .!?") in HELP
        shown = help_ui.of_all if is_help else partial(help_ui.of_all, title=NOT_UNDERSTOOD)
        message, answer = replace(message, name="message"), partial(helped, show=shown)
    thread_ts, event_id = message.event.get("thread_ts"), message.event_id
    port = DirectReplies(bot.slack, bot.clock, message.channel_id, thread_ts, event_id)
    listener = Listener("command", message.name, None, answer, Place.NEW)
    await Answering(bot, listener, message, port).run()
    await bot.received.answered(event_id)


@listens("action", ids.RUN_COMMAND, None, place=Place.CLICKED)
async def run_command(context: Context) -> Message | None:
    """Run the command in the button's value, which requires that command's permission."""
    name, _, text = context.value.partition(" ")
    command = LISTENERS.get(("command", name))
    if command is None:
        raise NotFound(OUTDATED)
    typed = replace(context.interaction, name=name, text=text)
    answer: Message | None = await command.answer(replace(context, interaction=typed))
    return answer


@listens("action", ANYTHING, None)
async def outdated(_: Context) -> Message:
    """Answer a button or menu that no longer exists."""
    return Message(OUTDATED)


@listens("command", ANYTHING, None, place=Place.NEW)
async def no_such_command(_: Context) -> Message:
    """Answer a command that is in the manifest but not in this version."""
    return Message("Unknown command. Try `/gatehouse help`.")
