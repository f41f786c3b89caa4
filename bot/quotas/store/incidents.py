"""Stores incidents. An incident is a series of 429s with the same code for one organization."""

from dataclasses import asdict, replace
from datetime import UTC, datetime

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, String, cast, func, select, true, update

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import BlockCode, Incident, IncidentDetail
from bot.quotas.store.accounts import blocks_of, lowered_in
from bot.quotas.tables import incidents
from bot.quotas.tables import quota_organizations as organizations
from bot.store import outbox
from bot.store.engine import Transaction

# The start of a card's key. The incident's ID follows.
CARD_PREFIX = "incident:"
_subject = cast(incidents.c.id, String)
CARD_IS_NEEDED = outbox.shows(CARD_PREFIX, _subject)
# A new block within this time after an incident ended reopens the incident and its alert.
REOPEN_SECONDS = 600.0
DETAIL = TypeAdapter(IncidentDetail)


# Built once, because building a statement takes longer than executing it.
_INCIDENTS = select(incidents, *(column for column in organizations.c if column.name != "id")).join(
    organizations, organizations.c.id == incidents.c.organization
)
_IS_OPEN = incidents.c.closed_at.is_(None)


async def count_one(
    tx: Transaction,
    organization: int,
    code: int,
    detail: IncidentDetail,
    at: float,
    sent_at: float,
) -> None:
    """Add a 429 to the organization's last incident with this code, or open a new incident.

    The last incident is reopened if it ended less than ten minutes ago or after the refused call
    was sent. The transaction must have locked the organization's row.
    """
    its = (incidents.c.organization == organization) & (incidents.c.code == code)
    ended_since = datetime.fromtimestamp(min(sent_at, at - REOPEN_SECONDS), UTC)
    raised = await tx.execute(
        update(incidents)
        .where(
            incidents.c.id == select(func.max(incidents.c.id)).where(its).scalar_subquery(),
            incidents.c.closed_at.is_(None) | (incidents.c.closed_at >= ended_since),
        )
        .values(refusals=incidents.c.refusals + 1, closed_at=None)
    )
    if not raised.rowcount:
        opened = incidents.insert().values(
            organization=organization,
            code=code,
            opened_at=datetime.fromtimestamp(at, UTC),
            refusals=1,
            detail=asdict(detail),
        )
        await tx.execute(opened)


async def close(tx: Transaction, incident: Incident, because: str = "") -> None:
    """Close an incident. `because` says why calls aren't possible, unless they work again."""
    detail = asdict(replace(incident.detail, ended_because=because))
    closed = update(incidents).where(incidents.c.id == incident.id)
    await tx.write(closed.values(closed_at=await tx.now(), detail=detail))


async def load(tx: Transaction, incident_id: str) -> Incident | None:
    """Return the incident with this ID, or None if it doesn't exist."""
    return next(iter(await _load(tx, _subject == incident_id)), None)


async def all_open(tx: Transaction, organization: int | None = None) -> list[Incident]:
    """Return every open incident, or those of an organization, oldest first."""
    its = true() if organization is None else incidents.c.organization == organization
    return await _load(tx, _IS_OPEN & its)


async def _load(tx: Transaction, which: ColumnElement[bool]) -> list[Incident]:
    query = _INCIDENTS.where(which).order_by(incidents.c.opened_at)
    now = (await tx.now()).timestamp()
    return [
        Incident(
            id=row.id,
            organization=row.organization,
            key=OrganizationKey(row.data_center, row.organization_id),
            code=row.code,
            opened_at=row.opened_at,
            closed_at=row.closed_at,
            refusals=row.refusals,
            # Another version of Gatehouse may have written fewer or more fields.
            detail=DETAIL.validate_python(row.detail),
            blocks=blocks_of(row),
            lowered=lowered_in(row, now).get(BlockCode(row.code).kind),
            muted_until=row.muted_until,
            muted_by=row.muted_by,
            now=now,
        )
        for row in await tx.execute(query)
    ]


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete a batch of incidents that ended before the given time. Return the number deleted."""
    return await tx.remove_some(incidents, incidents.c.closed_at < before)
