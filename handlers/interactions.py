"""What somebody did in Slack, read out of its payloads."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from bot.dataclass import dataclass
from bot.permissions import Person
from handlers.modals import hidden, storable

Body = Mapping[str, Any]
# Of what stands in what, in a message's blocks.
MOST_DEPTH = 20


@dataclass(frozen=True)
class Interaction:
    """What somebody did, before it is known who they are.

    Attributes:
        slack_user_id: Who.
        team_ids: The workspaces that the payload names.
        name: The command, action or callback id.
        text: What was typed after a command.
        value: A button's value or a menu's choice.
        channel_id, message_ts: Where, if anywhere.
        is_for_one: Whether nobody else sees the message.
        trigger_id: Opens a modal within three seconds.
        response_url: Where the answer goes.
        view: The modal, for submissions.
        command: What to type for the same, for submissions; "" where nothing typed says that.
        block_id: Of the block that a button or menu is in.
        event_id: Of an event; every delivery of it has the same.
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
        """The command as it was typed or written in a direct message, the button, the form."""
        way = "message " if self.event_id else ""
        return f"{way}{self.name} {self.text}".strip()[:100]

    @property
    def delivery(self) -> str:
        """What this click has in common with nothing but its own second delivery."""
        if self.event_id:
            return self.event_id
        if not self.trigger_id:
            return ""
        typed = self.view.get("state")
        return repr((self.trigger_id, self.response_url, self.slack_user_id, self.text, typed))


@dataclass(frozen=True)
class Context:
    """A click by a known person."""

    person: Person
    interaction: Interaction

    @property
    def is_typed(self) -> bool:
        """Whether a command was typed; else a button was pressed."""
        return self.interaction.name.startswith("/")

    @property
    def text(self) -> str:
        """What was typed after the command."""
        return self.interaction.text

    @property
    def value(self) -> str:
        """The button's value or the menu's choice."""
        return self.interaction.value


def _part(body: Body, name: str) -> Body:
    """An object inside a payload; an empty one when it is not there, or is no object."""
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(body: Body, name: str) -> str:
    """A text inside a payload, likewise: reading must not raise after an acknowledgement."""
    value = body.get(name)
    return storable(value) if isinstance(value, str) else ""


def _teams(body: Body) -> tuple[str, ...]:
    """Every workspace that a payload names: a person of another one may act in a shared channel."""
    team, user = _part(body, "team"), _part(body, "user")
    named_teams = (_text(body, "team_id"), _text(team, "id"), _text(user, "team_id"))
    return tuple(one for one in named_teams if one)


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
    """Read a modal; its `private_metadata` may hold, as `reply_to`, where the answer goes."""
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
        team_ids=tuple(one for one in teams if one),
        name=_text(event, "type"),
        text=_text(event, "text"),
        channel_id=_text(event, "channel"),
        message_ts=_text(event, "ts"),
        event_id=_text(body, "event_id"),
        event=event,
    )


def _message_text(message: Body) -> str:
    """What a message says; one of an app may say it in its blocks and attachments only."""
    text = _text(message, "text")
    return text or "\n".join(_texts([message.get("blocks"), message.get("attachments")]))


def _texts(part: object, depth: int = 0) -> Iterator[str]:
    if isinstance(part, list) and depth < MOST_DEPTH:
        for one in part:
            yield from _texts(one, depth + 1)
    elif isinstance(part, Mapping) and depth < MOST_DEPTH:
        for name, value in part.items():
            if isinstance(value, str) and name in {"text", "fallback"}:
                yield storable(value)
            else:
                yield from _texts(value, depth + 1)


def read_shortcut(body: Body) -> Interaction:
    """Read a shortcut; one in the menu of a message has its text."""
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
    """Return the block id of a modal's first input, where an error of all of it may stand."""
    blocks = view.get("blocks")
    listed = [one for one in blocks if isinstance(one, Mapping)] if isinstance(blocks, list) else []
    ids = [_text(one, "block_id") for one in listed if one.get("type") == "input"]
    values = _part(_part(view, "state"), "values")
    return next(iter((*ids, *map(str, values))), "")


def read_suggestion(body: Body) -> Interaction:
    """Read what is typed into a type-ahead."""
    return Interaction(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(body, "action_id"),
        value=_text(body, "value"),
        view=_part(body, "view"),
    )
