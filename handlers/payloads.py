"""Values from Slack's payloads. Missing or invalid values are read as empty strings.

PostgreSQL can neither store nor search for NUL, and lone surrogates are valid in JSON, but not in
UTF-8. So every value has a placeholder instead of these characters.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

MARK = "\ufffd"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Payload(dict[str, Any]):
    """A payload from Slack, or an object in one, such as a submitted form (`view`)."""

    def part(self, name: str) -> "Payload":
        """Return the object with this name, or an empty one."""
        value = self.get(name)
        return Payload(value if isinstance(value, Mapping) else {})

    def text(self, name: str) -> str:
        """Return the string with this name."""
        value = self.get(name)
        return UNSTORABLE.sub(MARK, value) if isinstance(value, str) else ""

    def texts(self, *places: str) -> Iterator[str]:
        """Yield the strings at places such as `user.id`, without those that are missing."""
        for place in places:
            *parts, name = place.split(".")
            if found := reduce(Payload.part, parts, self).text(name):
                yield found

    def first(self, *places: str) -> str:
        """Return the first string that is at one of these places."""
        return next(self.texts(*places), "")

    @property
    def user_id(self) -> str:
        """The ID of the person who typed, clicked or wrote."""
        return self.first("user.id", "user_id", "event.user")

    @property
    def team_ids(self) -> tuple[str, ...]:
        """Every workspace ID in the payload: in shared channels, people can be from others."""
        places = ("team_id", "team.id", "user.team_id", "event.team", "event.user_team")
        return tuple(self.texts(*places))

    @property
    def channel_id(self) -> str:
        """The ID of the channel that the payload is from, or "" if it's from the Home tab."""
        return self.first("container.channel_id", "channel.id", "channel_id")

    @property
    def response_url(self) -> str:
        """The URL for the answer. A form has the URL of the message that it was opened from."""
        return self.text("response_url") or self.part("view").hidden("reply_to")

    @property
    def clicked(self) -> "Payload":
        """The clicked button or the menu that was used, or an empty object if there is none."""
        actions = self.get("actions")
        return Payload(actions[0] if actions else {})

    @property
    def value(self) -> str:
        """A button's value, a menu's choice, or the text typed into a type-ahead."""
        return (self.clicked or self).first("value", "selected_option.value")

    @property
    def name(self) -> str:
        """The name in metrics and logs, such as `/orgs` or `orgs.page`."""
        name = self.text("command") or self.clicked.text("action_id")
        name = name or self.first("callback_id", "event.type", "view.callback_id")
        # The rest of an action ID tells the buttons of a row apart.
        return ".".join(name.split(".")[:2])

    def typed(self, block_id: str) -> str:
        """Return the value of this form's input."""
        for element in self.part("state").part("values").part(block_id).values():
            if isinstance(element, Mapping):
                chosen = Payload(element).part("selected_option").get("value")
                found = element.get("value") or chosen or element.get("selected_date_time")
                return UNSTORABLE.sub(MARK, str(found or ""))
        return ""

    def hidden(self, name: str) -> str:
        """Return a value that the bot stored in this form's metadata."""
        metadata = self.get("private_metadata")
        try:
            data = json.loads(metadata) if isinstance(metadata, str) else None
        except (ValueError, RecursionError):
            return ""
        return UNSTORABLE.sub(MARK, str(data.get(name, ""))) if isinstance(data, dict) else ""
