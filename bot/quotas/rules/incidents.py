"""Incidents: a series of 429s for one organization and code, until a call passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import Blocks


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """The facts when an incident opened, and facts learned since.

    Attributes:
        own: The bot's own use, including gateway clients, and the limit, by the kind of limit.
        words: The service's message.
        sent_code: The code as the service sent it.
        is_foreign: True if the bot's own use was below the limit.
        may_be_plan: True if it was above the limit of a smaller plan.
        is_lowered: True if the bot has since lowered the number of concurrent calls.
        clients: Each gateway client's use of the minute and of the day.
        ended_because: Why the organization can no longer be called, otherwise "".
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
    """An incident now; `organization` is the organization's ID in other tables.

    `blocks` are the organization's current blocks. `muted_until` is None unless it is in the
    future; `muted_by` is a name.
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
