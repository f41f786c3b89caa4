"""Direct messages: commands without the slash; anything else is answered with help."""

from collections.abc import Callable
from dataclasses import replace

from bot.commands import TESTUSERS
from bot.errors import NotFound
from bot.slack.conversation import WrittenMessage
from bot.slack.messages import help as help_ui
from bot.slack.messages.message import Message
from bot.testusers.messages import conversation as ui
from bot.testusers.parse.change import ChangeRequest
from bot.testusers.parse.command import as_typed, parse_testusers
from bot.workflows import Workflows
from handlers.helping import May, helped
from handlers.listeners import Answer, Context, Interaction, Listeners

# People's messages have no subtype, or that of a file; edits and deletions have others.
PLAIN_SUBTYPES = frozenset({None, "file_share"})
FORMATTING = "`*_~"
HELP = frozenset({"help", "?", "what can you do"})
GREETINGS = frozenset(
    {"hi", "hello", "hey", "hallo", "good morning", "thanks", "thank you", "thx", "ok"}
)
# Words of buttons that are on the card, on Home and in `/testusers requests`.
DECIDING = frozenset({"approve", "deny", "approvals", "pending"})
CHANGES = frozenset({"add", "remove"})


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to direct messages; to be registered after the commands."""

    async def written(interaction: Interaction) -> None:
        """Claim the message, then answer it like the command it contains."""
        if not _is_for_us(interaction) or not await workflows.conversation.take(
            interaction.event_id
        ):
            return
        message = WrittenMessage(
            interaction.event_id, interaction.channel_id, interaction.event.get("thread_ts")
        )
        listeners.tasks.start(respond(interaction, message), "message")

    async def respond(interaction: Interaction, message: WrittenMessage) -> None:
        command, answer = _command(interaction, listeners, workflows)
        port = workflows.conversation.replies(message)
        await listeners.answer_in(command, answer, port)
        await workflows.conversation.answered(interaction.event_id)

    listeners.event("message", written)


def _is_for_us(interaction: Interaction) -> bool:
    event = interaction.event
    return bool(
        interaction.slack_user_id
        and interaction.event_id
        and event.get("channel_type") == "im"
        and event.get("subtype") in PLAIN_SUBTYPES
        and not event.get("bot_id")
        and not event.get("edited")
    )


def _command(
    interaction: Interaction, listeners: Listeners, workflows: Workflows
) -> tuple[Interaction, Answer]:
    typed = interaction.text.strip().strip(FORMATTING)
    words = typed.split(maxsplit=1)
    first = words[0].lstrip("/").casefold() if words else ""
    if answer := listeners.commands.get(f"/{first}"):
        text = words[1] if words[1:] else ""
        return replace(interaction, name=f"/{first}", text=text), answer
    message = replace(interaction, name="message")
    plain = typed.casefold().strip(" .!?")
    if plain in HELP:
        return message, _help(workflows, help_ui.of_all)
    if plain in GREETINGS:
        return message, _help(workflows, ui.greeting)
    testusers = replace(interaction, name=TESTUSERS.name, text=typed)
    if first in CHANGES:
        text = as_typed(typed, workflows.testusers.reading.aliases)
        return replace(testusers, text=text), _offer_form(workflows)
    if first in DECIDING or first in TESTUSERS.subcommands:
        text = "requests" if first in DECIDING else typed
        return replace(testusers, text=text), listeners.commands[TESTUSERS.name]
    return message, _help(workflows, lambda may: ui.not_understood(help_ui.of_all(may)))


def _help(workflows: Workflows, show: Callable[[May], Message]) -> Answer:
    async def answer(context: Context) -> Message:
        """Show the person's commands."""
        return await helped(context, workflows, show)

    return answer


def _offer_form(workflows: Workflows) -> Answer:
    async def offer_form(context: Context) -> Message:
        """Answer `add X to welcome` with a button that opens the filled-in form."""
        testusers = workflows.testusers
        await testusers.asking.require(context.person)
        command = parse_testusers(context.text, testusers.reading.aliases)
        if not isinstance(command, ChangeRequest):
            raise NotFound(f"I can't read “{context.text[:80]}”.")
        flow = testusers.asking.flow(command.flow)
        filled = await testusers.extending.of_command(context.person, flow, command)
        return ui.filled_form(flow, filled)

    return offer_form
