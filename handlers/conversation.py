"""Commands without a slash, from direct messages and buttons, and unknown commands."""

from dataclasses import replace
from functools import partial

from bot.app import Gatehouse
from bot.commands import TESTUSERS
from bot.errors import NotFound
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from bot.testusers.asking import prefilled, require_asking
from bot.testusers.messages import notes as ui
from bot.testusers.parse.change import ChangeRequest
from bot.testusers.parse.command import as_typed, parse_testusers
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
from handlers.testusers import answer_testusers

# People's messages have no subtype or the file subtype; edits and deletions have others.
PLAIN_SUBTYPES = frozenset({None, "file_share"})
FORMATTING = "`*_~"
HELP = frozenset({"help", "?", "what can you do"})
GREETINGS = frozenset(
    {"hi", "hello", "hey", "hallo", "good morning", "thanks", "thank you", "thx", "ok"}
)
# The words on buttons of the card, the Home tab and `/testusers requests`.
DECIDING = frozenset({"approve", "deny", "approvals", "pending"})
OUTDATED = "This button is from an older version of Gatehouse and no longer works."
CHANGES = frozenset({"add", "remove"})


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
        bot.tasks.start(_respond(bot, interaction), "message")


async def _respond(bot: Gatehouse, interaction: Interaction) -> None:
    command, answer = _command(bot, interaction)
    thread_ts, event_id = interaction.event.get("thread_ts"), interaction.event_id
    port = bot.replies.to_message(interaction.channel_id, thread_ts, event_id)
    listener = Listener("command", command.name, None, answer, Place.NEW)
    await Answering(bot, listener, command, port).run()
    await bot.received.answered(event_id)


def _command(bot: Gatehouse, interaction: Interaction) -> tuple[Interaction, Answer]:
    typed = interaction.text.strip().strip(FORMATTING)
    words = typed.split(maxsplit=1)
    first = words[0].lstrip("/").casefold() if words else ""
    if listener := LISTENERS.get(("command", f"/{first}")):
        text = words[1] if words[1:] else ""
        return replace(interaction, name=f"/{first}", text=text), listener.answer
    message = replace(interaction, name="message")
    plain = typed.casefold().strip(" .!?")
    if plain in HELP:
        return message, partial(helped, show=help_ui.of_all)
    if plain in GREETINGS:
        return message, partial(helped, show=ui.greeting)
    testusers = replace(interaction, name=TESTUSERS.name, text=typed)
    if first in CHANGES:
        text = as_typed(typed, bot.flows.aliases)
        return replace(testusers, text=text), _offer_form
    if first in DECIDING or first in TESTUSERS.subcommands:
        text = "requests" if first in DECIDING else typed
        return replace(testusers, text=text), answer_testusers
    return message, partial(helped, show=lambda may: ui.not_understood(help_ui.of_all(may)))


async def _offer_form(context: Context) -> Message:
    bot = context.bot
    await require_asking(bot, context.person)
    typed = parse_testusers(context.text, bot.flows.aliases)
    if not isinstance(typed, ChangeRequest):
        raise NotFound(f"I don't understand “{context.text[:80]}”.")
    flow = bot.flows.named(typed.flow)
    return ui.filled_form(flow, await prefilled(bot, context.person, flow, typed))


@listens("action", ids.RUN_COMMAND, None, place=Place.CLICKED, is_prefix=True)
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
