"""The pages of `/testusers list`, `history` and `requests`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant, RecordedChange, Request


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a flow's `total` test users, with information about them.

    People added by Gatehouse come first; `outside` counts the others. `text` is the filter text, if
    any; `scheduled` are approved requests that start later. `url` is the list's address in the flow
    service, or "".
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
    url: str = ""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A flow's requests, newest first, and its latest list changes without a request."""

    flow: Flow
    requests: tuple[Request, ...]
    endings: tuple[RecordedChange, ...]
    page: int
    pages: int
    total: int


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending request, the buttons for the reader, and the number of approvals that it needs."""

    request: Request
    decides: bool
    cancels: bool
    needed: int = 1


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The pending requests, oldest first, and the approved requests that start later."""

    rows: tuple[PendingRow, ...]
    page: int
    pages: int
    total: int
    scheduled: tuple[PendingRow, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantGroup:
    """People who got access to a flow through the same request, until the same time."""

    flow: Flow
    identities: tuple[str, ...]
    ends_at: datetime | None


def grouped(granted: Iterable[tuple[Flow, Grant]]) -> list[GrantGroup]:
    """Return the grants by request and end, in the order of the first grant of each group."""
    groups: dict[tuple[str, datetime | None], list[tuple[Flow, Grant]]] = {}
    for flow, grant in granted:
        groups.setdefault((grant.request_id, grant.ends_at), []).append((flow, grant))
    return [
        GrantGroup(group[0][0], tuple(grant.identity for _, grant in group), ends_at)
        for (_, ends_at), group in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A person's own recent requests, and one page of the access that they requested.

    `people` is the total number of people with that access.
    """

    requests: tuple[Request, ...]
    groups: tuple[GrantGroup, ...]
    people: int
    page: int = 0
    pages: int = 1
