"""What somebody did in Slack, read out of its payloads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.permissions import Person
from bot.ui.modals import hidden, storable

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Click:
    """What somebody did, before it is known who they are.

    Attributes:
        slack_user_id: Who.
        team_ids: The workspaces that the payload names.
        name: The command, action or callback id.
        text: What was typed after a command.
        value: A button's value or a menu's choice.
        channel_id, message_ts: Where, if anywhere.
        trigger_id: Opens a modal within three seconds.
        response_url: Where the answer goes.
        view: The modal, for submissions.
        command: What to type for the same, for submissions; "" where nothing typed says that.
    """

    slack_user_id: str
    team_ids: tuple[str, ...]
    name: str
    text: str = ""
    value: str = ""
    channel_id: str = ""
    message_ts: str = ""
    trigger_id: str = ""
    response_url: str = ""
    view: Mapping[str, Any] = field(default_factory=dict)
    command: str | None = None

    @property
    def delivery(self) -> str:
        """What this click has in common with nothing but its own second delivery."""
        if not self.trigger_id:
            return ""
        typed = self.view.get("state")
        return repr((self.trigger_id, self.response_url, self.slack_user_id, self.text, typed))


@dataclass(frozen=True)
class Ask:
    """A click by a known person."""

    person: Person
    click: Click

    @property
    def text(self) -> str:
        """What was typed after the command."""
        return self.click.text

    @property
    def value(self) -> str:
        """The button's value or the menu's choice."""
        return self.click.value


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


def read_command(body: Body) -> Click:
    """Read a slash command."""
    return Click(
        slack_user_id=_text(body, "user_id"),
        team_ids=_teams(body),
        name=_text(body, "command"),
        text=_text(body, "text"),
        channel_id=_text(body, "channel_id"),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url"),
    )


def read_action(body: Body) -> Click:
    """Read a button or a menu."""
    actions = body.get("actions")
    first = actions[0] if isinstance(actions, list) and actions else {}
    action = first if isinstance(first, Mapping) else {}
    container = _part(body, "container")
    return Click(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(action, "action_id"),
        value=_text(action, "value") or _text(_part(action, "selected_option"), "value"),
        channel_id=_text(container, "channel_id") or _text(_part(body, "channel"), "id"),
        message_ts=_text(container, "message_ts"),
        trigger_id=_text(body, "trigger_id"),
        response_url=_text(body, "response_url"),
        view=_part(body, "view"),
    )


def read_submission(body: Body) -> Click:
    """Read a modal; its `private_metadata` may hold, as `reply_to`, where the answer goes."""
    view = _part(body, "view")
    return Click(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(view, "callback_id"),
        value=_text(view, "private_metadata"),
        trigger_id=_text(body, "trigger_id"),
        response_url=hidden(view, "reply_to"),
        view=view,
    )


def read_suggestion(body: Body) -> Click:
    """Read what is typed into a type-ahead."""
    return Click(
        slack_user_id=_text(_part(body, "user"), "id"),
        team_ids=_teams(body),
        name=_text(body, "action_id"),
        value=_text(body, "value"),
        view=_part(body, "view"),
    )
