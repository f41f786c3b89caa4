"""Handles commands sent by direct message or by a button, and unknown commands and buttons."""

import re
from functools import partial
from typing import Any

from bot.app import Gatehouse
from bot.permissions import Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.block_kit import OUTDATED, Message
from bot.slack.replies import DirectReplies
from handlers import payloads
from handlers.bolt import GatehouseApp
from handlers.commands import helped
from handlers.listening import COMMAND, EVENT, EVENT_SECONDS, Needs
from handlers.payloads import Body
from handlers.progress import AnswerAt

# Messages from people have one of these subtypes. Edits and deletions have other subtypes.
PLAIN_SUBTYPES = frozenset({None, "file_share", "me_message", "thread_broadcast"})
# People copy commands from the help, which shows them as code.
CODE_SPAN = re.compile(r"^`+([^`]+)`+$")
WHAT_TO_SEND = "You can send me these commands, with or without the slash:"
EVERYTHING = re.compile("")
NOUNS = {"shortcut": "shortcut", "message_action": "shortcut", "view_submission": "form"}
UNKNOWN = Needs(None, AnswerAt.NOWHERE, pace="", is_counted=False)


def register(app: GatehouseApp, bot: Gatehouse) -> None:
    """Register direct messages, the buttons with commands, and everything that is unknown.

    Bolt uses the first listener that matches, so this must be called last.
    """
    slack = bot.slack
    after_ack = app.listening.after_ack

    async def written(_person: None, body: Body) -> None:
        """Answer a direct message, unless the event has been received before."""
        event = payloads.part(body, "event")
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
            bot.tasks.start(respond(event, body), "message")

    async def respond(event: Body, body: Body) -> None:
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
        # Errors and metrics name the command.
        meant = {**body, "command": name if is_command else "message", "text": text}
        await app.listening.answer(answer, COMMAND, meant, port.say)

    async def run_command(person: Person, body: Body) -> Message | None:
        """Run the command in a button's value after checking the permission for the command."""
        name, _, text = payloads.value(body).partition(" ")
        return await app.commands.run(name, text, person, body)

    store_written = app.listening.before_ack(written, EVENT, seconds=EVENT_SECONDS)
    app.event("message")(store_written)
    runs = Needs(Permission.ASK_FOR_HELP, AnswerAt.CLICKED)
    app.action(ids.row_of(ids.RUN_COMMAND))(after_ack(run_command, runs))
    app.command(EVERYTHING)(after_ack(no_such_command, COMMAND))
    for register_rest in (app.action, app.shortcut, app.view):
        register_rest(EVERYTHING)(after_ack(outdated, Needs(Permission.ASK_FOR_HELP)))
    app.options(EVERYTHING)(app.listening.suggest(no_options, UNKNOWN))
    app.event(EVERYTHING)(after_ack(ignored, UNKNOWN))


async def outdated(_person: Person, body: Body) -> Message:
    """Tell the person that a button, a menu, a shortcut or a form no longer works."""
    noun = NOUNS.get(payloads.text(body, "type"), "button")
    return Message(OUTDATED.replace("button", noun))


async def no_such_command(_person: Person, _body: Body) -> Message:
    """Answer a command that exists in the Slack app's manifest but not in this version."""
    return Message("Unknown command. Try `/gatehouse help`.")


async def no_options(_person: None, _body: Body) -> list[Any]:
    """Offer nothing in a menu that no longer exists."""
    return []


async def ignored(_person: None, _body: Body) -> None:
    """Ignore an event that an older version of the manifest subscribed to."""
