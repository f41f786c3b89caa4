"""The content of a Home tab."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.quotas.rules.use import OrganizationUse
from bot.testusers.rules.pages import GrantGroup, PendingRow
from bot.testusers.rules.requests import Request


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An organization that the service blocks, by name; `until` is the time of the next try."""

    name: str
    data_center: str
    code: int
    until: datetime | None


@dataclass(frozen=True, slots=True)
class HomeContent:
    """The content of one person's Home tab at one moment.

    Attributes:
        waiting: Requests that the person may decide on and has not approved yet, oldest first.
        waiting_total: The number of such requests; `waiting` has the first of them.
        own: The person's requests that are pending or were decided lately, newest first.
        ending: People for whom they requested access that ends soon, the next end first.
        blocks: Organizations that are blocked now.
        closest: Organizations nearest to a limit, nearest first.
        asks_changes: True if the person may ask for changes, and cancel their own requests.
        sees_identities: True if the person sees identities in full.
    """

    waiting: Sequence[PendingRow]
    waiting_total: int
    own: Sequence[Request]
    ending: Sequence[GrantGroup]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]
    asks_changes: bool
    sees_identities: bool
