"""Direct messages: a text is a command without its slash, anything else is answered with help."""

from dataclasses import replace

from bot.ui import conversation as ui
from bot.ui import help as help_ui
from bot.ui.message import Message
from bot.workflows.conversation import WrittenMessage
from bot.workflows.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Answer, Context, Interaction, Listeners

# A person's own words come without a subtype, or with a file; edits and deletions have others.
PLAIN_SUBTYPES = frozenset({None, "file_share"})
FORMATTING = "`*_~"


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to what people write to the bot; to be registered after the commands."""

    async def written(interaction: Interaction) -> None:
        """A message: noted as received, then answered like the command that it is."""
        if not _is_for_us(interaction) or not await workflows.conversation.take(
            interaction.event_id
        ):
            return
        message = WrittenMessage(
            interaction.event_id, interaction.channel_id, interaction.event.get("thread_ts")
        )
        listeners.tasks.start(respond(interaction, message), "message")

    async def respond(interaction: Interaction, message: WrittenMessage) -> None:
        command, answer = _command(interaction, listeners)
        port = workflows.conversation.replies(message)
        await listeners.answer_in(command, answer or _help(workflows), port)
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


def _command(interaction: Interaction, listeners: Listeners) -> tuple[Interaction, Answer | None]:
    """The message as the command that it is, and what answers that; None for any other text."""
    words = interaction.text.strip().strip(FORMATTING).split(maxsplit=1)
    name = f"/{words[0].lstrip('/').casefold()}" if words else ""
    answer = listeners.commands.get(name)
    if answer is None:
        return replace(interaction, name="message"), None
    return replace(interaction, name=name, text=words[1] if words[1:] else ""), answer


def _help(workflows: Workflows) -> Answer:
    async def help_with_all(context: Context) -> Message:
        """What the person can do, for a text that is no command."""
        return await helped(context, workflows, lambda may: ui.not_a_command(help_ui.of_all(may)))

    return help_with_all
