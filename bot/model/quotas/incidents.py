"""An incident: a series of 429 of one organization and code, until a call passes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import Blocks


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident as it stands; `organization` is the organization's id in other tables.

    `detail` is what was known when it opened: the service's own words (`words`), the code as sent
    (`sent_code`), the bot's own use and the limit of each kind (`own`), whether that use was below
    the limit (`is_foreign`), and whether fewer calls at once are made since (`is_lowered`). The
    bot's own use has the gateway's clients in it; `clients` has what each of them used of the
    minute and of the day. `blocks` are the organization's now; `muted_until` is None unless that is
    ahead; `muted_by` is a name.
    """

    id: int
    organization: int
    key: OrganizationKey
    code: int
    opened_at: datetime
    closed_at: datetime | None
    refusals: int
    detail: Mapping[str, Any]
    blocks: Blocks
    muted_until: datetime | None = None
    muted_by: str = ""
