"""Handles commands sent by direct message or by a button, and unknown commands and buttons."""

import re
from copy import copy
from functools import partial

from slack_bolt.async_app import AsyncAck, AsyncBoltContext, AsyncBoltRequest

from bot.app import Gatehouse
from bot.permissions import Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.block_kit import OUTDATED, Message
from bot.slack.replies import DirectReplies
from handlers import payloads
from handlers.bolt import GatehouseApp
from handlers.commands import helped
from handlers.listening import COMMAND, EVENT, EVENT_SECONDS, Needs, acknowledge
from handlers.payloads import Body
from handlers.progress import AnswerAt

# Messages from people have one of these subtypes. Edits and deletions have other subtypes.
PLAIN_SUBTYPES = frozenset({None, "file_share", "me_message", "thread_broadcast"})
# People copy commands from the help, which shows them as code.
CODE_SPAN = re.compile(r"^`+([^`]+)`+$")
WHAT_TO_SEND = "You can send me these commands, with or without the slash:"
EVERYTHING = re.compile("")


def register(app: GatehouseApp, bot: Gatehouse) -> None:
    """Register direct messages, the buttons with commands, and everything that is unknown.

    Bolt uses the first listener that matches, so this must be called last.
    """
    slack = bot.slack

    async def written(event: Body, body: Body, request: AsyncBoltRequest) -> None:
        """Answer a direct message, unless the event has been received before."""
        event_id = payloads.text(body, "event_id")
        is_from_person = bool(
            payloads.text(event, "user")
            and event_id
            and event.get("channel_type") == "im"
            and event.get("subtype") in PLAIN_SUBTYPES
            and not event.get("bot_id")
            and not event.get("edited")
        )
        if is_from_person and await slack.received.claim(event_id):
            bot.tasks.start(respond(event, request), "message")

    async def respond(event: Body, request: AsyncBoltRequest) -> None:
        mention = f"<@{slack.people.bot_user_id}>"
        written = payloads.text(event, "text").strip()
        typed = CODE_SPAN.sub(r"\1", written.removeprefix(mention).strip())
        first = next(iter(typed.split(maxsplit=1)), "")
        text = typed.removeprefix(first).strip()
        name = f"/{first.lstrip('/').casefold()}"
        is_command = name in app.commands

        async def answer(person: Person, body: Body) -> Message | None:
            if is_command:
                return await app.commands.run(name, text, person, body)
            return await helped(slack.people, person, partial(help_ui.of_all, title=WHAT_TO_SEND))

        channel_id = payloads.text(event, "channel")
        port = DirectReplies(slack.client, bot.clock, channel_id, event.get("thread_ts"))
        meant = copy(request)
        # Errors and metrics name the command.
        meant.body = {**request.body, "command": name if is_command else "message", "text": text}
        meant.context = AsyncBoltContext({**request.context, "needs": COMMAND})
        await app.runner.answer(answer, meant, port.say)

    async def run_command(person: Person, action: Body, body: Body) -> Message | None:
        """Run the command in a button's value after checking the permission for the command."""
        name, _, text = payloads.value(action).partition(" ")
        return await app.commands.run(name, text, person, body)

    store_written = app.runner.before_acknowledging(written, EVENT_SECONDS)
    app.event("message", middleware=[EVENT])(store_written)
    runs = Needs(Permission.ASK_FOR_HELP, AnswerAt.CLICKED)
    app.action(ids.row_of(ids.RUN_COMMAND), middleware=[runs])(ack=acknowledge, lazy=[run_command])
    app.command(EVERYTHING, middleware=[COMMAND])(ack=acknowledge, lazy=[no_such_command])
    app.action(EVERYTHING, middleware=[Needs(Permission.ASK_FOR_HELP)])(
        ack=acknowledge, lazy=[outdated]
    )
    app.options(EVERYTHING)(no_options)
    for register_rest in (app.event, app.shortcut, app.view):
        register_rest(EVERYTHING)(acknowledge)


async def outdated() -> Message:
    """Tell the person that the clicked button or menu no longer works."""
    return Message(OUTDATED)


async def no_such_command() -> Message:
    """Answer a command that exists in the Slack app's manifest but not in this version."""
    return Message("Unknown command. Try `/gatehouse help`.")


async def no_options(ack: AsyncAck) -> None:
    """Offer nothing in a menu that no longer exists."""
    await ack(options=[])
