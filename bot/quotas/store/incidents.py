"""Stores incidents. An incident is a series of 429s with the same code for one organization."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Row, String, cast, func, select, update

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import BlockCode, Incident, IncidentDetail
from bot.quotas.store.accounts import blocks_of, lowered_in
from bot.quotas.tables import incidents
from bot.quotas.tables import quota_organizations as organizations
from bot.store import outbox
from bot.store.engine import Transaction, remove_some

# The start of a card's key. The incident's ID follows.
CARD_PREFIX = "incident:"
CARD_IS_NEEDED = outbox.shows(CARD_PREFIX, cast(incidents.c.id, String))
# A new block within this time after an incident ended reopens the incident and its alert.
REOPEN_SECONDS = 600.0
DETAIL = TypeAdapter(IncidentDetail)


# Built once, because building a statement takes longer than executing it.
_INCIDENTS = select(
    organizations,
    incidents.c.id.label("incident_id"),
    *(column for column in incidents.c if column.name not in {"id", "organization"}),
).join(organizations, organizations.c.id == incidents.c.organization)
_ALL_OPEN = _INCIDENTS.where(incidents.c.closed_at.is_(None)).order_by(incidents.c.opened_at)


async def count_one(
    tx: Transaction,
    organization: int,
    code: int,
    detail: IncidentDetail,
    at: float,
    sent_at: float,
) -> bool:
    """Add a 429 to the organization's last incident with this code, or open a new incident.

    Return True if the incident is new. The last incident is reopened if it ended less than ten
    minutes ago or after the refused call was sent. The transaction must have locked the
    organization's row.
    """
    its = (incidents.c.organization == organization) & (incidents.c.code == code)
    ended_since = datetime.fromtimestamp(min(sent_at, at - REOPEN_SECONDS), UTC)
    raised = await tx.connection.execute(
        update(incidents)
        .where(
            incidents.c.id == select(func.max(incidents.c.id)).where(its).scalar_subquery(),
            incidents.c.closed_at.is_(None) | (incidents.c.closed_at >= ended_since),
        )
        .values(refusals=incidents.c.refusals + 1, closed_at=None)
    )
    if raised.rowcount:
        return False
    values = {"organization": organization, "code": code, "detail": asdict(detail)}
    opened_at = datetime.fromtimestamp(at, UTC)
    opened = incidents.insert().values(**values, opened_at=opened_at, refusals=1)
    await tx.connection.execute(opened)
    return True


async def note_end(tx: Transaction, organization: int, because: str) -> None:
    """Record why calls are no longer possible in the organization's open incidents."""
    query = select(incidents.c.id, incidents.c.detail).where(_open_of(organization))
    for row in (await tx.connection.execute(query)).all():
        noted = update(incidents).where(incidents.c.id == row.id)
        await tx.write(noted.values(detail={**row.detail, "ended_because": because}))


async def close_all(tx: Transaction, organization: int) -> list[int]:
    """Close the organization's open incidents, and return their IDs."""
    closed = await tx.connection.execute(
        update(incidents)
        .where(_open_of(organization))
        .values(closed_at=await tx.now())
        .returning(incidents.c.id)
    )
    return sorted(closed.scalars())


async def open_ids(tx: Transaction, organization: int) -> list[int]:
    """Return the IDs of the organization's open incidents."""
    query = select(incidents.c.id).where(_open_of(organization)).order_by(incidents.c.id)
    return list((await tx.connection.execute(query)).scalars())


def _open_of(organization: int) -> Any:  # noqa: ANN401 - a condition
    return (incidents.c.organization == organization) & incidents.c.closed_at.is_(None)


async def load(tx: Transaction, incident_id: int) -> Incident | None:
    """Return the incident with this ID, or None if it doesn't exist."""
    row = (await tx.connection.execute(_INCIDENTS.where(incidents.c.id == incident_id))).first()
    return None if row is None else _incident(row, (await tx.now()).timestamp())


async def all_open(tx: Transaction) -> list[Incident]:
    """Return every open incident, oldest first."""
    now = (await tx.now()).timestamp()
    return [_incident(row, now) for row in await tx.connection.execute(_ALL_OPEN)]


async def count_open(tx: Transaction) -> int:
    """Count the open incidents."""
    query = select(func.count()).select_from(incidents).where(incidents.c.closed_at.is_(None))
    return (await tx.connection.execute(query)).scalar_one()


def _incident(row: Row[Any], now: float) -> Incident:
    is_muted = row.muted_until > now
    kind = BlockCode(row.code).kind
    lowered = (limit for limit in lowered_in(row, now) if limit.kind is kind)
    return Incident(
        id=row.incident_id,
        organization=row.id,
        key=OrganizationKey(row.data_center, row.organization_id),
        code=row.code,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        refusals=row.refusals,
        # Another version of Gatehouse may have written fewer or more fields.
        detail=DETAIL.validate_python(row.detail),
        blocks=blocks_of(row),
        lowered=next(lowered, None),
        muted_until=datetime.fromtimestamp(row.muted_until, UTC) if is_muted else None,
        muted_by=row.muted_by,
        now=now,
    )


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete a batch of incidents that ended before the given time. Return the number deleted."""
    return await remove_some(tx, incidents, incidents.c.closed_at < before)
