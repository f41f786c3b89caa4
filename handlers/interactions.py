"""Slack interactions, parsed from payloads."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.app import Gatehouse
from bot.permissions import Person

Body = Mapping[str, Any]
# The maximum nesting depth that is read in a message's blocks.
MOST_DEPTH = 20
NUL, MARK = "\0", "\ufffd"
# PostgreSQL can neither store nor search for NUL. Lone surrogates are valid in JSON, but can't be
# encoded.
_UNSTORABLE = re.compile(f"[{NUL}\ud800-\udfff]")


@dataclass(frozen=True)
class Interaction:
    """A person's action in Slack, before the person is identified.

    Attributes:
        slack_user_id: The person.
        team_ids: The workspaces named in the payload; shared channels have people from other
            workspaces.
        name: The command, action or callback id, or the type of the event.
        text: The text after a command, or of a direct message or a shortcut's message.
        value: A button's value, a menu's choice, or the text in a type-ahead.
        channel_id, message_ts: The message, if any.
        is_for_one: True if nobody else sees the message.
        trigger_id: Opens a modal within three seconds.
        response_url: Accepts the answer; a form may embed it as `reply_to`.
        view: The modal, for submissions.
        block_id: The block of the button or menu.
        event_id: The event's id, which is the same for every delivery.
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
    view: Body = field(default_factory=dict)
    block_id: str = ""
    event_id: str = ""
    event: Body = field(default_factory=dict)

    def typed(self, block_id: str) -> str:
        """Return the value of a form's input; empty if it has no value.

        Lone surrogates are kept: the request is then refused rather than changed.
        """
        for element in _part(self._values, self.block(block_id)).values():
            if isinstance(element, Mapping):
                value = element.get("value") or _part(element, "selected_option").get("value")
                return str(value or element.get("selected_date_time") or "").replace(NUL, MARK)
        return ""

    def block(self, block_id: str) -> str:
        """Return the block id of an input that may have been refilled, which extends its id."""
        return next((name for name in self._values if name.startswith(f"{block_id}+")), block_id)

    @property
    def _values(self) -> Body:
        return _part(_part(self.view, "state"), "values")

    def hidden(self, name: str) -> str:
        """Return an id that the bot embedded in its form."""
        return _hidden(self.view, name)

    @property
    def first_input(self) -> str:
        """The block id of a form's first input, for errors about the whole form."""
        blocks = self.view.get("blocks")
        for block in blocks if isinstance(blocks, list) else []:
            if isinstance(block, Mapping) and block.get("type") == "input":
                return _text(block, "block_id")
        return ""


@dataclass(frozen=True)
class Context:
    """An interaction to answer: the bot's parts, the person, and their action.

    If a click is only stored, the person isn't identified yet, and has no role.
    """

    bot: Gatehouse
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


def read(body: Body) -> Interaction:
    """Parse Slack's payload; never raises, because this happens before the acknowledgement."""
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
        # An app's text may be only in blocks and attachments.
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
