"""What a person's Home tab shows: what waits for them, what they asked for, and the limits."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.dataclass import dataclass
from bot.model.quotas.use import OrganizationUse
from bot.model.testusers.changes import Flow
from bot.model.testusers.pages import PendingRow
from bot.model.testusers.requests import Grant, Request

OPEN_FOR = timedelta(hours=24)
"""Who opened their Home tab so long ago or later has it kept up to date."""

BETWEEN = timedelta(seconds=3)
"""Contract, section 11: a tab is published at most once in three seconds."""

DECIDED_FOR = timedelta(days=7)
ENDING_WITHIN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class EndingGrant:
    """A grant that ends soon, and the flow that it is for."""

    flow: Flow
    grant: Grant


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An organization, by name, that the service blocks; `until` is when it is tried again."""

    name: str
    data_center: str
    code: int
    until: datetime | None


@dataclass(frozen=True, slots=True)
class HomeContent:
    """All of it, for one person at one moment.

    Attributes:
        waiting: Requests that the person may decide on and has not approved yet, oldest first.
        waiting_total: How many there are; `waiting` has the first ones.
        own: The person's requests that are pending or were decided lately, newest first.
        cancels: Whether the person may cancel their own.
        ending: Grants that they asked for and that end soon, the first one first.
        blocks: Organizations that are blocked now.
        closest: Organizations nearest to a limit, nearest first.
        asks_changes: Whether the person may ask for changes.
        sees_identities: Whether they see identities in full.
    """

    waiting: Sequence[PendingRow]
    waiting_total: int
    own: Sequence[Request]
    cancels: bool
    ending: Sequence[EndingGrant]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]
    asks_changes: bool
    sees_identities: bool
