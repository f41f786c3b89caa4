"""Pages of long lists, and the buttons that turn them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Generic, TypeVar

from pydantic import AliasChoices, Field

from bot.slack.messages.block_kit import ButtonValue, SlackBlock, actions, button, context

T = TypeVar("T")


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

    def turns(self, action_id: str) -> list[SlackBlock]:
        """Return the `Previous` and `Next` buttons that this page needs, each with its own ID."""
        buttons = list[SlackBlock]()
        for label, step in (("Previous", -1), ("Next", 1)):
            wanted = replace(self.wanted, page=self.wanted.page + step)
            if 0 <= wanted.page <= self.last:
                buttons.append(button(label, f"{action_id}.{label.lower()}", wanted.value()))
        return buttons

    def turning(self, action_id: str) -> list[SlackBlock]:
        """Return blocks with the page's place and its buttons, or none if it is the only page."""
        return [context(self.place), actions(*self.turns(action_id))] if self.last else []


def last_page(total: int, size: int) -> int:
    """Return the number of the last page of `total` items. An empty list has one page, 0."""
    return max(0, total - 1) // size
