"""Values from Slack's payloads. Missing or invalid values are read as empty strings.

PostgreSQL can neither store nor search for NUL, and lone surrogates are valid in JSON, but not in
UTF-8. So every value has a placeholder instead of these characters.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]
MARK = "\ufffd"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def part(body: Body, name: str) -> Body:
    """Return a payload's object with this name, or an empty one."""
    value = body.get(name)
    return value if isinstance(value, Mapping) else {}


def text(body: Body, name: str) -> str:
    """Return a payload's string with this name."""
    value = body.get(name)
    return UNSTORABLE.sub(MARK, value) if isinstance(value, str) else ""


def user_id(body: Body) -> str:
    """Return the ID of the person who typed, clicked or wrote."""
    found = text(part(body, "user"), "id") or text(body, "user_id")
    return found or text(part(body, "event"), "user")


def team_ids(body: Body) -> tuple[str, ...]:
    """Return every workspace ID in the payload: in shared channels, people can be from others."""
    event = part(body, "event")
    found = (
        text(body, "team_id"),
        text(part(body, "team"), "id"),
        text(part(body, "user"), "team_id"),
        text(event, "team"),
        text(event, "user_team"),
    )
    return tuple(filter(None, found))


def channel_id(body: Body) -> str:
    """Return the ID of the channel that the payload is from, or "" if it's from the Home tab."""
    found = text(part(body, "container"), "channel_id") or text(part(body, "channel"), "id")
    return found or text(body, "channel_id")


def response_url(body: Body) -> str:
    """Return the URL for the answer. A form has the URL of the message that it was opened from."""
    return text(body, "response_url") or hidden(part(body, "view"), "reply_to")


def clicked(body: Body) -> Body:
    """Return the clicked button or the menu that was used, or an empty object if there is none."""
    actions = body.get("actions")
    return actions[0] if actions else {}


def value(body: Body) -> str:
    """Return a button's value, a menu's choice, or the text typed into a type-ahead."""
    source = clicked(body) or body
    return text(source, "value") or text(part(source, "selected_option"), "value")


def typed(view: Body, block_id: str) -> str:
    """Return the value of a form's input, or an empty string if there is no value."""
    for element in part(part(part(view, "state"), "values"), block_id).values():
        if isinstance(element, Mapping):
            found = element.get("value") or part(element, "selected_option").get("value")
            return UNSTORABLE.sub(MARK, str(found or element.get("selected_date_time") or ""))
    return ""


def hidden(view: Body, name: str) -> str:
    """Return a value that the bot stored in a form's metadata."""
    metadata = view.get("private_metadata")
    try:
        data = json.loads(metadata) if isinstance(metadata, str) else None
    except (ValueError, RecursionError):
        return ""
    return UNSTORABLE.sub(MARK, str(data.get(name, ""))) if isinstance(data, dict) else ""
