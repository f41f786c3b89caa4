"""The content of a Home tab."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.quotas.rules.use import OrganizationUse
from bot.testusers.rules.pages import GrantGroup, PendingRow
from bot.testusers.rules.requests import Request


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An organization that the service blocks; `until` is the time of the next attempt."""

    name: str
    data_center: str
    code: int
    until: datetime | None


@dataclass(frozen=True, slots=True)
class HomeContent:
    """The content of one person's Home tab at a given time.

    Attributes:
        waiting: Requests that the person may decide on and has not approved yet, oldest first.
        waiting_total: The total number of such requests; `waiting` may have fewer.
        own: The person's requests that are pending or were decided recently, newest first.
        ending: Access that the person requested and that ends soon, the next to end first.
        blocks: Organizations that are blocked now.
        closest: The organizations closest to a limit, closest first.
        asks_changes: True if the person may request changes and cancel their own requests.
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
