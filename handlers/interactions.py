"""Interactions with Slack, parsed from its payloads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.permissions import Person
from handlers.modals import hidden, storable

Body = Mapping[str, Any]
# The nesting depth that is read in a message's blocks.
MOST_DEPTH = 20


@dataclass(frozen=True)
class Interaction:
    """A person's action in Slack, before the person is identified.

    Attributes:
        slack_user_id: The person.
        team_ids: The workspaces that the payload names.
        name: The command, action or callback id.
        text: The text after a command.
        value: A button's value or a menu's choice.
        channel_id, message_ts: The message, if any.
        is_for_one: True if nobody else sees the message.
        trigger_id: Opens a modal within three seconds.
        response_url: Accepts the answer.
        view: The modal, for submissions.
        command: The equivalent command, for submissions; "" if there's no equivalent.
        block_id: The block of the button or menu.
        event_id: The event's id; equal for each of its deliveries.
        event: The event's own fields.
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
    view: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None
    block_id: str = ""
    event_id: str = ""
    event: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entry_point(self) -> str:
        """The command as typed, the button or the form."""
        way = "message " if self.event_id else ""
        return f"{way}{self.name} {self.text}".strip()[:100]

    @property
    def delivery(self) -> str:
        """An id that only a redelivery of this click shares."""
        if self.event_id:
            return self.event_id
        if not self.trigger_id:
            return ""
        typed = self.view.get("state")
        return repr((self.trigger_id, self.response_url, self.slack_user_id, self.text, typed))


@dataclass(frozen=True)
class Context:
    """An interaction by an identified person."""

    person: Person
    interaction: Interaction

    @property
    def is_typed(self) -> bool:
        """True for a typed command, False for a click."""
        return self.interaction.name.startswith("/")

    @property
    def text(self) -> str:
        """The text after the command."""
        return self.interaction.text

    @property
    def value(self) -> str:
        """The button's value or the menu's choice."""
        return self.interaction.value


def _part(body: Body, name: str) -> Body:
    """Return a nested object, or an empty one: reading must not raise once acknowledged."""
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    return storable(value) if isinstance(value, str) else ""


def _teams(body: Body) -> tuple[str, ...]:
    """Return every workspace in a payload: a shared channel has people of others."""
    team, user = _part(body, "team"), _part(body, "user")
    named_teams = (_text(body, "team_id"), _text(team, "id"), _text(user, "team_id"))
    return tuple(team_id for team_id in named_teams if team_id)


def read_command(body: Body) -> Interaction:
    """Read a slash command."""
    return Interaction(
        slack_user_id=_text(body, "user_id"),
        team_ids=_teams(body),
        name=_text(body, "command"),
        text=_text(body, "text"),
        channel_id=_text(body, "channel_id"),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url"),
    )


def read_action(body: Body) -> Interaction:
    """Read a button or a menu."""
    actions = body.get("actions")
    first = actions[0] if isinstance(actions, list) and actions else {}
    action = first if isinstance(first, Mapping) else {}
    container = _part(body, "container")
    return Interaction(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(action, "action_id"),
        value=_text(action, "value") or _text(_part(action, "selected_option"), "value"),
        block_id=_text(action, "block_id"),
        channel_id=_text(container, "channel_id") or _text(_part(body, "channel"), "id"),
        message_ts=_text(container, "message_ts"),
        is_for_one=bool(container.get("is_ephemeral")),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url"),
        view=_part(body, "view"),
    )


def read_submission(body: Body) -> Interaction:
    """Read a modal; its `private_metadata` may hold the answer's place as `reply_to`."""
    view = _part(body, "view")
    return Interaction(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(view, "callback_id"),
        value=_text(view, "private_metadata"),
        trigger_id=_text(body, "trigger_id"),
        response_url=hidden(view, "reply_to"),
        view=view,
    )


def read_event(body: Body) -> Interaction:
    """Read an event of the Events API."""
    event = _part(body, "event")
    teams = (_text(body, "team_id"), _text(event, "team"), _text(event, "user_team"))
    return Interaction(
        slack_user_id=_text(event, "user"),
        team_ids=tuple(team_id for team_id in teams if team_id),
        name=_text(event, "type"),
        text=_text(event, "text"),
        channel_id=_text(event, "channel"),
        message_ts=_text(event, "ts"),
        event_id=_text(body, "event_id"),
        event=event,
    )


def _message_text(message: Body) -> str:
    """Return a message's text; an app's may be in its blocks and attachments only."""
    text = _text(message, "text")
    return text or "\n".join(_texts([message.get("blocks"), message.get("attachments")]))


def _texts(part: object, depth: int = 0) -> Iterator[str]:
    if isinstance(part, list) and depth < MOST_DEPTH:
        for element in part:
            yield from _texts(element, depth + 1)
    elif isinstance(part, Mapping) and depth < MOST_DEPTH:
        for name, value in part.items():
            if isinstance(value, str) and name in {"text", "fallback"}:
                yield storable(value)
            else:
                yield from _texts(value, depth + 1)


def read_shortcut(body: Body) -> Interaction:
    """Read a shortcut; a shortcut on a message includes the message's text."""
    return Interaction(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(body, "callback_id"),
        text=_message_text(_part(body, "message")),
        channel_id=_text(_part(body, "channel"), "id"),
        message_ts=_text(body, "message_ts"),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url"),
    )


def first_input(view: Mapping[str, Any]) -> str:
    """Return the block id of a modal's first input, for errors about the whole modal."""
    blocks = view.get("blocks")
    listed = (
        [block for block in blocks if isinstance(block, Mapping)]
        if isinstance(blocks, list)
        else []
    )
    ids = [_text(block, "block_id") for block in listed if block.get("type") == "input"]
    values = _part(_part(view, "state"), "values")
    return next(iter((*ids, *map(str, values))), "")


def read_suggestion(body: Body) -> Interaction:
    """Read the text typed into a type-ahead."""
    return Interaction(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(body, "action_id"),
        value=_text(body, "value"),
        view=_part(body, "view"),
    )
