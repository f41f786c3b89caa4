"""What `/testusers list`, `history` and `requests` show: one page of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.model.requests import Grant, RecordedChange, Request
from bot.model.testusers import Flow


@dataclass(frozen=True, slots=True)
class ListPage:
    """Who may test a flow now: one page of `total` identities, and what is known of them."""

    flow: Flow
    identities: tuple[str, ...]
    grants: Mapping[str, Grant]
    page: int
    pages: int
    total: int


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The requests of a flow, newest first, and the newest changes that no request explains."""

    flow: Flow
    requests: tuple[Request, ...]
    endings: tuple[RecordedChange, ...]
    page: int
    pages: int
    total: int


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A request that waits, and which buttons the reader has for it."""

    request: Request
    decides: bool
    cancels: bool


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The requests that wait for a decision, oldest first."""

    rows: tuple[PendingRow, ...]
    needed: int
    page: int
    pages: int
    total: int


def page_count(total: int, size: int) -> int:
    """How many pages there are; one when there is nothing."""
    return max(1, -(-total // size))
