"""An incident: a series of 429 of one organization and code, until a call passes."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import Blocks


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """What was known when an incident opened, and what is known since.

    Attributes:
        own: The bot's own use and the limit, by the kind of limit; the gateway's clients included.
        words: The service's own words.
        sent_code: The code as the service sent it.
        is_foreign: Whether the bot's own use was below the limit.
        may_be_plan: Whether it was above the limit of a smaller plan.
        is_lowered: Whether fewer calls at once are made since.
        clients: What each of the gateway's clients had used of the minute and of the day.
        ended_because: Why nobody can call the organization any more; "" where that is not so.
    """

    own: Mapping[str, Sequence[int]] = field(default_factory=dict)
    words: str = ""
    sent_code: int | None = None
    is_foreign: bool = False
    may_be_plan: bool = False
    is_lowered: bool = False
    clients: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ended_because: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident as it stands; `organization` is the organization's id in other tables.

    `blocks` are the organization's now; `muted_until` is None unless that is ahead; `muted_by` is a
    name.
    """

    id: int
    organization: int
    key: OrganizationKey
    code: int
    opened_at: datetime
    closed_at: datetime | None
    refusals: int
    detail: IncidentDetail
    blocks: Blocks
    muted_until: datetime | None = None
    muted_by: str = ""
