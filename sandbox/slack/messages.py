"""Messages and open modals, as Slack stores them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Message:
    """The current state of a message.

    `only_for` is the ID of the only person who can see an ephemeral message. If a message was
    edited, `versions` holds its earlier texts and blocks, oldest first. In a public reply to a
    command, `command` is the command that the person typed.
    """

    channel: str
    ts: str
    user: str
    text: str = ""
    blocks: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    only_for: str | None = None
    client_msg_id: str | None = None
    command: str | None = None
    deleted: bool = False
    versions: list[tuple[str, list[Json]]] = field(default_factory=list)
    number: int = 0

    @property
    def is_edited(self) -> bool:
        """True if the message was edited after it was posted."""
        return bool(self.versions)

    @property
    def elements(self) -> list[tuple[Json, Json]]:
        """The interactive elements of the message, each with its block."""
        return list(interactive(self.blocks))

    @property
    def buttons(self) -> list[str]:
        """The labels of all buttons, from top to bottom."""
        return [label(e) for _, e in self.elements if e.get("type") == "button"]

    @property
    def all_text(self) -> str:
        """The text of the message, followed by the texts in its blocks, one per line."""
        return "\n".join([self.text, *texts(self.blocks)])

    def as_slack(self) -> Json:
        """Return the message in the form that the Web API and payloads use."""
        shown: Json = {"type": "message", "user": self.user, "ts": self.ts, "text": self.text}
        if self.blocks:
            shown["blocks"] = self.blocks
        if self.thread_ts:
            shown["thread_ts"] = self.thread_ts
        if self.client_msg_id:
            shown["client_msg_id"] = self.client_msg_id
        return shown


@dataclass
class View:
    """An open modal, or a Home tab.

    `body` is the view that the bot sent. `values` holds the text and choices that a person entered.
    `versions` holds the earlier bodies of a Home tab, oldest first.
    """

    id: str
    hash: str
    user: str
    body: Json
    values: dict[str, dict[str, Json]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    team_id: str = ""
    versions: list[Json] = field(default_factory=list)

    @property
    def blocks(self) -> list[Json]:
        """The blocks of the view."""
        blocks: list[Json] = self.body.get("blocks", [])
        return blocks

    @property
    def title(self) -> str:
        """The title of the view."""
        return str(self.body.get("title", {}).get("text", ""))

    @property
    def elements(self) -> list[tuple[Json, Json]]:
        """The interactive elements of the view, each with its block."""
        return list(interactive(self.blocks))

    @property
    def buttons(self) -> list[str]:
        """The labels of all buttons, from top to bottom."""
        return [label(e) for _, e in self.elements if e.get("type") == "button"]

    @property
    def labels(self) -> list[str]:
        """The labels of all inputs, from top to bottom."""
        return [label_of(block) for block in self.blocks if block.get("type") == "input"]

    @property
    def all_text(self) -> str:
        """The title of the view, followed by the texts in its blocks, one per line."""
        return "\n".join([self.title, *texts(self.blocks)])

    def as_slack(self, app_id: str, bot_id: str) -> Json:
        """Return the view in the form that payloads and `views.*` responses use."""
        return {
            "private_metadata": "",
            "callback_id": "",
            "external_id": "",
            "submit": None,
            "close": None,
            **self.body,
            "id": self.id,
            "team_id": self.team_id,
            "hash": self.hash,
            "state": {"values": self.values},
            "previous_view_id": None,
            "root_view_id": self.id,
            "app_id": app_id,
            "app_installed_team_id": self.team_id,
            "bot_id": bot_id,
        }


def label(element: Json) -> str:
    """Return the label of a button, or the placeholder of a menu."""
    words = element.get("text") or element.get("placeholder") or {}
    return str(words.get("text", "")) if isinstance(words, dict) else str(words)


def label_of(block: Json) -> str:
    """Return the label of an input block."""
    return str(block.get("label", {}).get("text", ""))


def interactive(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Yield every element that has an `action_id`, together with its block."""
    for block in blocks:
        held = [*block.get("elements", []), block.get("accessory"), block.get("element")]
        for element in held:
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def texts(part: Any) -> Iterator[str]:
    """Yield each piece of visible text in a block or a list of blocks, in reading order."""
    if isinstance(part, list):
        for item in part:
            yield from texts(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if isinstance(value, str) and key in READ_ALOUD:
                yield value
            elif not isinstance(value, str):
                yield from texts(value)


READ_ALOUD = frozenset(
    {"text", "title", "caption", "label", "name", "alt_text", "subtitle", "body"}
)
