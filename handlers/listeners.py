"""Parses Slack's payloads into interactions and registers the listeners that answer them.

Each listener declares a surface (such as buttons) and a permission, which is usually checked before
the listener runs. For a stored click, the permission is checked when a job processes the click,
because the result may depend on stored data. A permission of None allows everyone in the workspace.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, TypeVar

from bot.app import Gatehouse
from bot.commands import FORM, HELP, Command
from bot.errors import Replayed, UsageError
from bot.permissions import ACTING, Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message

Body = Mapping[str, Any]
# The maximum nesting depth when reading a message's blocks.
MOST_DEPTH = 20
NUL, MARK = "\0", "\ufffd"
# PostgreSQL can neither store nor search for NUL. Lone surrogates are valid in JSON, but not in
# UTF-8.
_UNSTORABLE = re.compile(f"[{NUL}\ud800-\udfff]")


@dataclass(frozen=True)
class Interaction:
    """A person's action in Slack, before the person is identified.

    `team_ids` lists every workspace ID in the payload, because people in shared channels can be
    from other workspaces. `name` is the command, the action or callback ID, or the event type.
    `value` is a button's value, a menu's choice, or the text typed into a type-ahead. `is_for_one`
    is True if only this person sees the message. Forms store `response_url` as `reply_to`.
    """

    slack_user_id: str
    team_ids: tuple[str, ...]
    name: str
    text: str = ""
    value: str = ""
    channel_id: str = ""
    message_ts: str = ""
    is_for_one: bool = False
    trigger_id: str = ""
    response_url: str = ""
    view: Body = field(default_factory=dict)
    block_id: str = ""
    event_id: str = ""
    event: Body = field(default_factory=dict)

    def typed(self, block_id: str) -> str:
        """Return the value of a form's input, or an empty string if there is no value.

        Lone surrogates are kept so that a request that contains them is refused, not changed.
        """
        for element in _part(self._values, block_id).values():
            if isinstance(element, Mapping):
                value = element.get("value") or _part(element, "selected_option").get("value")
                return str(value or element.get("selected_date_time") or "").replace(NUL, MARK)
        return ""

    @property
    def _values(self) -> Body:
        return _part(_part(self.view, "state"), "values")

    def hidden(self, name: str) -> str:
        """Return a value that the bot stored in the form's metadata, or an empty string."""
        return _hidden(self.view, name)

    @property
    def first_input(self) -> str:
        """The block ID of a form's first input, for errors about the whole form."""
        blocks = self.view.get("blocks")
        for block in blocks if isinstance(blocks, list) else []:
            if isinstance(block, Mapping) and block.get("type") == "input":
                return _text(block, "block_id")
        return ""


@dataclass(frozen=True)
class Context:
    """Everything needed to answer an interaction: the bot, the person, and the interaction.

    For stored clicks and events, the person isn't identified yet and has no roles.
    """

    bot: Gatehouse
    person: Person
    interaction: Interaction

    @property
    def text(self) -> str:
        """The text after the command."""
        return self.interaction.text

    @property
    def value(self) -> str:
        """The button's value, the menu's choice, or the text typed into a type-ahead."""
        return self.interaction.value


def read(body: Body) -> Interaction:
    """Parse Slack's payload. Missing or invalid fields become empty instead of raising errors."""
    actions, event, view = body.get("actions"), _part(body, "event"), _part(body, "view")
    first = actions[0] if isinstance(actions, list) and actions else {}
    action = first if isinstance(first, Mapping) else {}
    user, container, channel = (_part(body, name) for name in ("user", "container", "channel"))
    teams = (
        *(_text(body, "team_id"), _text(_part(body, "team"), "id"), _text(user, "team_id")),
        *(_text(event, "team"), _text(event, "user_team")),
    )
    names = (
        *(_text(body, "command"), _text(action, "action_id"), _text(body, "action_id")),
        *(_text(body, "callback_id"), _text(event, "type"), _text(view, "callback_id")),
    )
    text, message = _text(body, "text") or _text(event, "text"), _part(body, "message")
    if body.get("type") == "message_action":
        # A message from an app might have text only in blocks and attachments.
        parts = [message.get("blocks"), message.get("attachments")]
        text = _text(message, "text") or "\n".join(_texts(parts))
    chosen = _text(_part(action, "selected_option"), "value")
    return Interaction(
        slack_user_id=_text(user, "id") or _text(body, "user_id") or _text(event, "user"),
        team_ids=tuple(filter(None, teams)),
        name=next(filter(None, names), ""),
        text=text,
        value=_text(action, "value") or chosen or _text(body, "value"),
        channel_id=_text(container, "channel_id")
        or _text(channel, "id")
        or _text(body, "channel_id")
        or _text(event, "channel"),
        message_ts=_text(container, "message_ts")
        or _text(body, "message_ts")
        or _text(event, "ts"),
        is_for_one=bool(container.get("is_ephemeral")),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url") or _hidden(view, "reply_to"),
        view=view,
        block_id=_text(action, "block_id"),
        event_id=_text(body, "event_id"),
        event=event,
    )


def _part(body: Body, name: str) -> Body:
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    return _storable(value) if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """Return the text with a placeholder for every character that can't be stored."""
    return _UNSTORABLE.sub(MARK, text)


def _hidden(view: Body, name: str) -> str:
    metadata = view.get("private_metadata")
    try:
        found = json.loads(metadata) if isinstance(metadata, str) else None
    except (ValueError, RecursionError):
        return ""
    return _storable(str(found.get(name, ""))) if isinstance(found, dict) else ""


def _texts(part: object, depth: int = 0) -> Iterator[str]:
    if isinstance(part, list) and depth < MOST_DEPTH:
        for element in part:
            yield from _texts(element, depth + 1)
    elif isinstance(part, Mapping) and depth < MOST_DEPTH:
        for name, value in part.items():
            if isinstance(value, str) and name in {"text", "fallback"}:
                yield _storable(value)
            else:
                yield from _texts(value, depth + 1)


Surface = Literal["command", "action", "view", "options", "event", "shortcut"]
# The surface for each type of payload. Commands have no type.
SURFACES: Mapping[object, Surface] = {
    "block_actions": "action",
    "view_submission": "view",
    "block_suggestion": "options",
    "event_callback": "event",
    "shortcut": "shortcut",
    "message_action": "shortcut",
}
Answer = Callable[[Context], Awaitable[Message | None]]
Check = Callable[[Context], Mapping[str, str]]
L = TypeVar("L", bound=Callable[[Context], Awaitable[Any]])
# The name of the listener for interactions that no other listener handles.
ANYTHING = "unknown"


class Place(Enum):
    """Where an answer appears.

    There are no other places, because a response_url can edit only one message.

    Attributes:
        NEW: A new message, which replaces "Working on it".
        CLICKED: The clicked message, which is replaced by "Working on it" and then by the answer.
        BELOW: A new message below the clicked message, which stays unchanged.
        FORM: A form opens. Errors appear in a new message, as with BELOW.
        LATER: The click is stored, and a job answers it later. Errors before that appear in a
            new message, as with BELOW.
        NOWHERE: Nothing is shown.
    """

    NEW = auto()
    CLICKED = auto()
    BELOW = auto()
    FORM = auto()
    LATER = auto()
    NOWHERE = auto()


@dataclass(frozen=True)
class Listener:
    """A listener for one kind of interaction.

    `name` is the name that Slack sends, with or without its final `.suffix`, or `ANYTHING`.
    `answer` returns a message or None, or the options for a type-ahead. If `requires_itself` is
    True, `answer` checks the permission itself, because the result depends on a request. `check`
    returns a form's error messages keyed by block ID, and the form stays open if there are any.
    `typed` returns the value of a button that opens a submitted form again after an error.
    """

    surface: Surface
    name: str
    permission: Permission | None
    answer: Callable[[Context], Awaitable[Any]]
    place: Place = Place.BELOW
    requires_itself: bool = False
    check: Check | None = None
    typed: Callable[[Context], str] | None = None

    @property
    def is_stored(self) -> bool:
        """True if the listener runs before the acknowledgement, without identifying the person."""
        return self.place in {Place.LATER, Place.NOWHERE}


LISTENERS: dict[tuple[Surface, str], Listener] = {}


def surface_of(body: Body) -> Surface | None:
    """Return the payload's surface, or None if the bot doesn't handle this type of payload."""
    return "command" if "command" in body else SURFACES.get(str(body.get("type")))


def find(surface: Surface, name: str) -> Listener | None:
    """Return the name's listener or else the `ANYTHING` listener, or None if neither exists."""
    names = (name, name.rpartition(".")[0], ANYTHING)
    return next(filter(None, (LISTENERS.get((surface, known)) for known in names)), None)


def listens(
    surface: Surface,
    name: str,
    permission: Permission | None,
    **options: Any,  # noqa: ANN401 - the other fields of `Listener`
) -> Callable[[L], L]:
    """Register the decorated function as a listener. `options` are fields of `Listener`."""

    def register(answer: L) -> L:
        LISTENERS[surface, name] = Listener(surface, name, permission, answer, **options)
        return answer

    return register


def command(
    described: Command, parse: Callable[[Context], Any]
) -> Callable[[Callable[[Context, Any], Awaitable[Message | None]]], Answer]:
    """Register the decorated function to answer a slash command. Only the sender sees the answer.

    Before the function runs, the text is parsed, and the permission that this form of the command
    requires is checked.
    """

    def register(answer: Callable[[Context, Any], Awaitable[Message | None]]) -> Answer:
        async def parse_and_answer(context: Context) -> Message | None:
            try:
                typed = parse(context)
            except UsageError as error:
                people, person = context.bot.people, context.person
                if error.kind is not None:
                    await people.require(person, described.permission(error.kind))
                    raise
                usable = described.only(partial(people.may, person))
                usage = usable.misuse(error.sentence)
                raise usage.suggesting(error.unknown, error.closest) from None
            permission = described.permission(typed.form)
            await require(context, permission, acts=typed.form != FORM)
            if typed.form == HELP:
                aliases = context.bot.flows.aliases
                return await helped(context, partial(help_ui.of_command, described, aliases))
            return await answer(context, typed)

        return listens("command", described.name, None, place=Place.NEW)(parse_and_answer)

    return register


async def require(context: Context, permission: Permission, *, acts: bool) -> None:
    """Check the permission. If `acts` is True, also check that the request isn't a repeat.

    Raises:
        Refused: The person lacks the permission.
        Replayed: The Slack request has already been handled.
    """
    await context.bot.people.require(context.person, permission)
    if acts and permission in ACTING and not await context.bot.received.take():
        raise Replayed


async def helped(context: Context, show: Callable[[help_ui.May], Message]) -> Message:
    """Return the message from `show` or, if the person has no access, a message that says so."""
    people, person = context.bot.people, context.person
    without_access = await people.lacks_access(person)
    if without_access:
        return replies.said(without_access)
    return show(partial(people.may, person))
