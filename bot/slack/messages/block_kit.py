"""Messages, Block Kit blocks, and pages, within Slack's limits (docs.slack.dev, Block Kit)."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import starmap
from operator import itemgetter
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import AliasChoices, ConfigDict, Field, TypeAdapter, ValidationError

from bot.errors import NotFound
from bot.slack.messages import text

SlackBlock = Mapping[str, Any]
T = TypeVar("T")

BLOCKS_A_MESSAGE = 50
# Slack recommends at most 4,000 characters, and refuses longer updates with msg_too_long.
TEXT_CHARACTERS = 3900
# Slack refuses messages with more than about 12,000 characters in total.
MESSAGE_CHARACTERS = 11_000
SECTION_CHARACTERS = 3000
# The maximum number of characters that this module puts in one section, to avoid truncation.
FILLED_CHARACTERS = 2900
FIELD_CHARACTERS = 2000
HEADER_CHARACTERS = 150
BUTTON_CHARACTERS = 75
# The room for a number such as ` (12)` behind a button's name.
NUMBER_CHARACTERS = 5
VALUE_CHARACTERS = 2000
OPTION_CHARACTERS = 75
INPUT_CHARACTERS = 3000
OUTDATED = "This button is from an earlier version of Gatehouse and no longer works."
CONTEXT_CHARACTERS = 2000


@dataclass(frozen=True)
class Message:
    """A message for Slack.

    Attributes:
        text: The fallback for notifications and screen readers, in escaped Slack markup. It is
            never empty, and is shortened to Slack's limit when sent.
        slack_blocks: The Block Kit blocks, which may be empty.
    """

    text: str
    slack_blocks: Sequence[SlackBlock] = ()

    @classmethod
    def of(cls, *lines: str) -> Self:
        """Return a message with these lines of markup in one paragraph."""
        return cls("\n".join(lines), (section("\n".join(lines)),))

    def plus(self, *blocks: SlackBlock, lines: Sequence[str] = ()) -> "Message":
        """Return a copy with `lines` added as paragraphs, followed by `blocks`.

        The text also gets the small print in the blocks.
        """
        shown = self.slack_blocks or (section(self.text),)
        said = [self.text, *lines]
        for block in blocks:
            if block["type"] == "context":
                said += map(itemgetter("text"), block["elements"])
        return Message("\n".join(said), (*shown, *map(section, lines), *blocks))

    @property
    def is_too_long(self) -> bool:
        """True if Slack may count more than `MESSAGE_CHARACTERS` characters in the blocks."""
        return len(json.dumps(self.slack_blocks, ensure_ascii=False)) > MESSAGE_CHARACTERS

    def with_buttons(self, *elements: SlackBlock) -> "Message":
        """Return a copy with a row of these buttons and menus. Without any, there is no row."""
        return self.plus(actions(*elements)) if elements else self

    def without_buttons(self) -> "Message":
        """Return a copy without buttons and menus."""
        blocks = [block for block in self.slack_blocks if block["type"] != "actions"]
        plain = [{name: block[name] for name in block if name != "accessory"} for block in blocks]
        return Message(self.text, plain)

    def then(self, other: "Message") -> "Message":
        """Return a message that contains this message, followed by `other`."""
        return Message(f"{self.text}\n{other.text}", (*self.slack_blocks, *other.slack_blocks))

    def payload(self) -> dict[str, Any]:
        """Return the message in the format that the Web API and response_url expect."""
        blocks = told_apart(self.slack_blocks[:BLOCKS_A_MESSAGE])
        fields: dict[str, Any] = {"text": text.cut(self.text, TEXT_CHARACTERS) or "…"}
        return {**fields, "blocks": blocks} if blocks else fields

    @cached_property
    def digest(self) -> str:
        """A digest of the message, for noticing whether it has changed."""
        content = json.dumps(self.payload(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


class ButtonValue:
    """The base class for dataclasses that are stored in a button's value.

    In the value, each field is named by its first letter, unless it has an alias of its own.
    """

    __pydantic_config__ = ConfigDict(alias_generator=itemgetter(0))

    def value(self) -> str:
        """Return the fields as the button's value."""
        fields = self._adapter().dump_json(self, by_alias=True, exclude_defaults=True)
        return fields.decode()

    @classmethod
    def of(cls, value: str) -> Self:
        """Read the fields from a button's value, or raise NotFound if it can't be read."""
        try:
            return cls._adapter().validate_json(value)  # type: ignore[no-any-return]
        except ValidationError:
            raise NotFound(OUTDATED) from None

    @classmethod
    @cache
    def _adapter(cls) -> TypeAdapter[Any]:
        return TypeAdapter(cls)


def plain_text(value: str, limit: int = BUTTON_CHARACTERS) -> dict[str, Any]:
    """Return a plain-text object. `value` may contain external text."""
    return {"type": "plain_text", "text": text.plain(value, limit), "emoji": False}


def header(title: str) -> SlackBlock:
    """Return a heading. `title` may contain external text."""
    return {"type": "header", "text": plain_text(title, HEADER_CHARACTERS)}


def section(markup: str, accessory: SlackBlock | None = None) -> SlackBlock:
    """Return a paragraph of escaped markup, which Slack always shows in full."""
    text_object = _markup(markup, SECTION_CHARACTERS)
    block: dict[str, Any] = {"type": "section", "text": text_object, "expand": True}
    return {**block, "accessory": accessory} if accessory else block


def sections(lines: Iterable[str]) -> list[SlackBlock]:
    """Return paragraphs with all of the given markup, which Slack always shows in full."""
    return [*map(section, paragraphs(lines))]


def paragraphs(lines: Iterable[str]) -> list[str]:
    """Group lines of markup into paragraphs of up to `FILLED_CHARACTERS` characters."""
    filled: list[str] = []
    for line in lines:
        if filled and len(filled[-1]) + len(line) < FILLED_CHARACTERS:
            filled[-1] += f"\n{line}"
        else:
            filled.append(line)
    return filled


def preformatted(typed: str) -> list[str]:
    """Return code blocks with all of this text, each short enough for one paragraph."""
    lines = [part for line in typed.split("\n") for part in text.to_copy(line, FILLED_CHARACTERS)]
    return [f"```\n{paragraph}\n```" for paragraph in paragraphs(lines)]


def fields(pairs: Iterable[tuple[str, str]]) -> SlackBlock:
    """Return a section that shows up to ten (label, markup) pairs in two columns."""
    cells = [_markup(f"*{label}*\n{value}", FIELD_CHARACTERS) for label, value in pairs]
    return {"type": "section", "fields": cells}


def context(*markup: str) -> SlackBlock:
    """Return a context block, which Slack shows in small gray text."""
    return {"type": "context", "elements": [_markup(text, CONTEXT_CHARACTERS) for text in markup]}


def confirm(title: str, question: str, label: str) -> SlackBlock:
    """Return a confirmation dialog. `label` is the text of the confirm button."""
    return {
        "title": plain_text(title, 100),
        "text": plain_text(question, 300),
        "confirm": plain_text(label, 30),
        "deny": plain_text("Go back", 30),
    }


def button(
    label: str,
    action_id: str,
    value: str,
    *,
    style: str | None = None,
    spoken: str | None = None,
    sure: SlackBlock | None = None,
) -> SlackBlock:
    """Return a button. Screen readers read `spoken`, if given, instead of the label.

    `sure` is a confirmation dialog created by `confirm`.
    """
    block: dict[str, Any] = {
        "type": "button",
        "text": plain_text(label),
        "action_id": action_id,
        "value": value,
    }
    if style:
        block["style"] = style
    if sure:
        block["confirm"] = dict(sure)
    if spoken:
        block["accessibility_label"] = text.plain(spoken, BUTTON_CHARACTERS)
    return block


def told_apart(blocks: Iterable[SlackBlock]) -> list[dict[str, Any]]:
    """Return copies of blocks in which screen readers read a different name for each button.

    Buttons with the same name are numbered.
    """
    taken = set[str]()
    copies = [dict(block) for block in blocks]
    for block in copies:
        elements = list[dict[str, Any]]()
        if block["type"] == "actions":
            block["elements"] = elements = [dict(element) for element in block["elements"]]
        elif "accessory" in block:
            block["accessory"] = accessory = dict(block["accessory"])
            elements = [accessory]
        for element in elements:
            if element["type"] != "button":
                continue
            name = first = element.get("accessibility_label", element["text"]["text"])
            number = 1
            while name in taken:
                number += 1
                name = f"{first[: BUTTON_CHARACTERS - NUMBER_CHARACTERS]} ({number})"
            taken.add(name)
            if number > 1:
                element["accessibility_label"] = name
    return copies


def select(placeholder: str, action_id: str, options: Sequence[tuple[str, str]]) -> SlackBlock:
    """Return a select menu with (text, value) options."""
    return {
        "type": "static_select",
        "action_id": action_id,
        "options": [*starmap(option, options)],
        "placeholder": plain_text(placeholder, HEADER_CHARACTERS),
    }


def option(shown: str, value: str) -> SlackBlock:
    """Return an option for a menu."""
    return {"text": plain_text(shown, OPTION_CHARACTERS), "value": value}


def actions(*elements: SlackBlock) -> SlackBlock:
    """Return a row of buttons and menus."""
    return {"type": "actions", "elements": list(elements)}


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> SlackBlock:
    """Return a plain-text table with headings in the first row.

    `right` has the indexes of right-aligned columns. Text wraps only in the first (name) column.
    """
    settings = [
        {"align": "right" if at in right else "left", "is_wrapped": at == 0}
        for at in range(len(rows[0]))
    ]
    cells = [[{"type": "raw_text", "text": text.plain(cell, 90)} for cell in row] for row in rows]
    return {"type": "table", "column_settings": settings, "rows": cells}


def tabular(
    paragraphs: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    footnotes: Iterable[str],
    controls: Iterable[SlackBlock],
    *,
    right: frozenset[int] = frozenset(),
) -> Message:
    """Return a message with paragraphs, a table, footnotes and a row of buttons and menus.

    `lines` describe the table's rows in the message's text. Without lines, there is no table.
    """
    blocks = [section(paragraph) for paragraph in paragraphs]
    if lines:
        blocks.append(table(rows, right=right))
    if footer := " · ".join(filter(None, footnotes)):
        blocks.append(context(footer))
    texts = filter(None, (*paragraphs, *lines, footer))
    return Message("\n".join(texts), blocks).with_buttons(*controls)


def _markup(markup: str, limit: int) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text.cut(markup, limit) or "–", "verbatim": True}


@dataclass(frozen=True)
class Wanted(ButtonValue):
    """The page that a command or a button asks for. The number `page` starts at 0.

    `text` is the search text, and `flow` the flow that the list is about.
    """

    # Buttons in older messages name it "t".
    text: Annotated[
        str, Field(validation_alias=AliasChoices("q", "t"), serialization_alias="q")
    ] = ""
    page: Annotated[int, Field(ge=0, lt=1_000_000)] = 0
    flow: str = ""


FIRST = Wanted()


@dataclass(frozen=True)
class Page(Generic[T]):
    """The items on one page. `total` counts all items. `last` is the last page's number."""

    items: Sequence[T]
    total: int
    last: int = 0
    wanted: Wanted = FIRST

    @classmethod
    def cut(cls, found: Sequence[T], size: int, wanted: Wanted) -> "Page[T]":
        """Return the wanted page, or the last page if there are fewer pages."""
        last = last_page(len(found), size)
        at = min(wanted.page, last)
        shown = found[at * size : (at + 1) * size]
        return cls(shown, len(found), last, replace(wanted, page=at))

    @property
    def place(self) -> str:
        """A phrase such as `Page 1 of 2`, or "" if there is only one page."""
        return f"Page {self.wanted.page + 1:,} of {self.last + 1:,}" if self.last else ""

    def turns(self, action_id: str) -> Iterator[SlackBlock]:
        """Yield the `Previous` and `Next` buttons that this page needs, each with its own ID."""
        for label, step in (("Previous", -1), ("Next", 1)):
            wanted = replace(self.wanted, page=self.wanted.page + step)
            if 0 <= wanted.page <= self.last:
                yield button(label, f"{action_id}.{label.lower()}", wanted.value())

    def turning(self, action_id: str) -> list[SlackBlock]:
        """Return blocks with the page's place and its buttons, or none if it is the only page."""
        return [context(self.place), actions(*self.turns(action_id))] if self.last else []


def last_page(total: int, size: int) -> int:
    """Return the number of the last page of `total` items. An empty list has one page, 0."""
    return max(0, total - 1) // size
