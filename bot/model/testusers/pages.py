"""What `/testusers list`, `history` and `requests` show: one page of each."""

from collections.abc import Mapping

from bot.dataclass import dataclass
from bot.model.testusers.changes import Flow
from bot.model.testusers.requests import Grant, RecordedChange, Request


@dataclass(frozen=True, slots=True)
class ListPage:
    """Who may test a flow now: one page of `total` identities, and what is known of them.

    Those that Gatehouse added come first; `outside` is how many others there are in all. `text` is
    what all of them have in them, where only such ones were asked for; `scheduled` are approved
    requests that start later.
    """

    flow: Flow
    identities: tuple[str, ...]
    grants: Mapping[str, Grant]
    page: int
    pages: int
    total: int
    outside: int = 0
    text: str = ""
    scheduled: tuple[Request, ...] = ()


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
    """A request that waits, which buttons the reader has for it, and how many have to approve."""

    request: Request
    decides: bool
    cancels: bool
    needed: int = 1


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The requests that wait for a decision, oldest first, and those that wait for their start."""

    rows: tuple[PendingRow, ...]
    page: int
    pages: int
    total: int
    scheduled: tuple[PendingRow, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnGrant:
    """Somebody whom the reader gave access to a flow."""

    flow: Flow
    grant: Grant


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A person's own requests that are under way or were decided lately, and their grants."""

    requests: tuple[Request, ...]
    grants: tuple[OwnGrant, ...]
