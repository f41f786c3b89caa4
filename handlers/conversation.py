"""Handles direct messages, the Home tab, buttons below any answer, and all that is unknown."""

import re
from functools import partial
from typing import Any

from bot.app import Gatehouse
from bot.commands import COMMANDS, Command
from bot.permissions import Permission, Person
from bot.slack.messages import ids, replies
from bot.slack.messages.block_kit import OUTDATED, Message
from bot.slack.messages.text import escape
from bot.slack.replies import DirectReplies
from bot.spelling import UNSEEN, closest, folded
from handlers.bolt import GatehouseApp
from handlers.listening import COMMAND, EVENT, AnswerAt, Listening, Needs
from handlers.payloads import Payload
from handlers.sharing import share

# Messages from people have one of these subtypes. Edits and deletions have other subtypes.
PLAIN_SUBTYPES = frozenset({None, "file_share", "me_message", "thread_broadcast"})
# Text that is formatted as a whole, such as a command copied from the help, which is code there.
FORMATTED = re.compile(r"(([*_~`])\2*)((?:(?!\2).)+)\1", re.DOTALL)
FORMATS_AT_MOST = 4
# A last word that may be an identity and end in a mark. Slack's own markup of one ends in `>`.
IDENTITY_AT_END = re.compile(r"(?:^|\s)(?!\S*>[*_~`]*$)(?:@|\S*:)\S*$")
BLANK = re.compile(rf"\A(?:{UNSEEN.pattern}|[\s\u200c\u200d\ufe00-\ufe0f])+")
WHAT_TO_SEND = "You can send me these commands, with or without the slash:"
NOT_A_COMMAND = "I don't know the command “{}”. Send `help` to see all commands."
LEAST_LETTERS = 3
EVERYTHING = re.compile("")
# The nouns of what isn't a button. Only a command's payload has no type.
NOUNS = {
    "": "command",
    "shortcut": "shortcut",
    "message_action": "shortcut",
    "view_submission": "form",
}
UNKNOWN = Needs(None, AnswerAt.NOWHERE, pace="", is_counted=False)


def register(app: GatehouseApp) -> None:
    """Register direct messages, the Home tab, buttons below any answer, and all that is unknown.

    Bolt uses the first listener that matches, so this must be called last.
    """
    listener = app.listening.listener
    app.event("message")(listener(partial(read_message, app.listening), EVENT))
    app.event("app_home_opened")(listener(open_home, EVENT))
    runs = Needs(Permission.ASK_FOR_HELP, AnswerAt.CLICKED)
    app.action(ids.row_of(ids.RUN_COMMAND))(listener(partial(run_command, app.listening), runs))
    shares = partial(share, app.listening)
    app.action(ids.SHARE)(listener(shares, Needs(Permission.READ)))
    app.command(EVERYTHING)(listener(outdated, COMMAND))
    for register_rest in (app.action, app.shortcut, app.view):
        register_rest(EVERYTHING)(listener(outdated, Needs(Permission.ASK_FOR_HELP)))
    app.options(EVERYTHING)(app.listening.suggest(no_options, UNKNOWN))
    app.event(EVERYTHING)(listener(ignored, UNKNOWN))


async def read_message(
    listening: Listening, bot: Gatehouse, _person: None, payload: Payload
) -> None:
    """Start the answer to a direct message, unless the event has been received before."""
    event = payload.part("event")
    event_id = payload.text("event_id")
    is_from_person = bool(
        event.text("user")
        and event_id
        and event.get("channel_type") == "im"
        and event.get("subtype") in PLAIN_SUBTYPES
        and not event.get("bot_id")
        and not event.get("edited")
    )
    if not is_from_person or not await bot.slack.received.claim(event_id):
        return
    first, text = command_in(event.text("text"), bot.slack.people.bot_user_id)
    # Errors and metrics name the command.
    command = f"/{first}" if f"/{first}" in listening.commands else "message"
    message = Payload(payload, command=command, text=text)
    thread_ts = event.get("thread_ts")
    port = DirectReplies(bot.slack.client, bot.clock, event.text("channel"), thread_ts)
    work = partial(answer_message, listening, first)
    bot.tasks.start(listening.answer(work, COMMAND, message, port.say), "message")


async def answer_message(
    listening: Listening, first: str, _bot: Gatehouse, person: Person, payload: Payload
) -> Message | None:
    """Answer a direct message that begins with the word `first`."""
    text = payload.text("text")
    if f"/{first}" in listening.commands:
        return await listening.run(f"/{first} {text}", person, payload)
    near = [command.name for command in COMMANDS if is_near(first, command)]
    if not near:
        return await listening.help(person, partial(replies.help_of_all, title=WHAT_TO_SEND))
    unknown = Message.of(NOT_A_COMMAND.format(escape(first, 80)))
    offered = [(f"{command} {text}".strip(),) * 2 for command in near]
    offer = replies.with_commands(unknown, offered)
    return await listening.help(person, lambda _: offer)


async def open_home(bot: Gatehouse, _person: None, payload: Payload) -> None:
    """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
    if payload.part("event").get("tab", "home") == "home" and payload.user_id:
        await bot.home.open(payload.user_id)


async def run_command(
    listening: Listening, _bot: Gatehouse, person: Person, payload: Payload
) -> Message | None:
    """Run the command in a button's value after checking the permission for the command."""
    return await listening.run(payload.value, person, payload)


async def outdated(_bot: Gatehouse, _person: Person, payload: Payload) -> Message:
    """Tell the person that a command, a button, a menu, a shortcut or a form no longer works."""
    noun = NOUNS.get(payload.text("type"), "button")
    return Message(OUTDATED.replace("button", noun))


async def no_options(_bot: Gatehouse, _person: None, _payload: Payload) -> list[Any]:
    """Offer nothing in a menu that no longer exists."""
    return []


async def ignored(_bot: Gatehouse, _person: None, _payload: Payload) -> None:
    """Ignore an event that an older version of the manifest subscribed to."""


def command_in(written: str, bot_user_id: str | None) -> tuple[str, str]:
    """Return the first word, which may be a command, and the rest of a message.

    The bot's mention in front of it, formatting, and characters that can't be seen are left out.
    """
    mention = rf"([*_~`]*)(?:<@{bot_user_id}(?:\|[^<>]*)?>|@gatehouse\b)[:,]?\1[:,]?"
    # A quotation begins with `>`, and an entry of a list with a bullet.
    ahead = re.compile(rf"\A(?:{mention}|&gt;|•)", re.IGNORECASE)
    typed = written
    for _ in range(FORMATS_AT_MOST):
        typed = ahead.sub("", unwrapped(visible(typed)))
    first, *rest = visible(typed).split(maxsplit=1) or [""]
    return folded(unwrapped(first)).lstrip("/"), "".join(rest)


def visible(text: str) -> str:
    """Return the text without what can't be seen at its ends."""
    behind = BLANK.sub("", text[::-1], 1)
    return BLANK.sub("", behind[::-1], 1)


def unwrapped(text: str) -> str:
    """Return the text without the formatting around it, unless an identity may end in its mark."""
    match = FORMATTED.fullmatch(text)
    if match is None:
        return text
    return text if match[2] != "`" and IDENTITY_AT_END.search(match[3]) else match[3]


def is_near(first: str, command: Command) -> bool:
    """Return True if the word is a typo or a part of the command's name."""
    name = command.name.removeprefix("/")
    if len(first) < LEAST_LETTERS:
        return False
    return name.startswith(first) or name.endswith(first) or bool(closest(first, [name]))
