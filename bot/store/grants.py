"""Grants: who was added by which request, and until when."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.requests import Grant, Who
from bot.model.testusers import Flow
from bot.store.engine import Transaction, from_microseconds
from bot.store.tables import grants

_WHO = TypeAdapter(Who)
_WHOS = TypeAdapter(tuple[Who, ...])


async def put(tx: Transaction, flow: Flow, grant: Grant) -> None:
    """Store the grant, in the place of an earlier one of the same person."""
    insert = postgresql.insert(grants) if tx.is_postgres else sqlite.insert(grants)
    values = {
        "flow_sid": flow.sid,
        "request_id": grant.request_id,
        "granted_by": _WHO.dump_python(grant.granted_by, mode="json"),
        "approved_by": _WHOS.dump_python(grant.approved_by, mode="json"),
        "granted_at": grant.granted_at,
        "ends_at": grant.ends_at,
    }
    await tx.connection.execute(
        insert.values(flow_key=flow.key, identity=grant.identity, **values).on_conflict_do_update(
            index_elements=[grants.c.flow_key, grants.c.identity], set_=values
        )
    )


async def drop(tx: Transaction, flow_key: str, identity: str) -> None:
    """Remove the grant of a person, if there is one."""
    mine = (grants.c.flow_key == flow_key) & (grants.c.identity == identity)
    await tx.connection.execute(delete(grants).where(mine))


async def of_flow(tx: Transaction, flow_key: str) -> dict[str, Grant]:
    """Return the grants of a flow by identity."""
    rows = await tx.connection.execute(select(grants).where(grants.c.flow_key == flow_key))
    return {row.identity: _grant(row) for row in rows}


async def due(tx: Transaction, flow_key: str) -> list[Grant]:
    """Return the grants of a flow whose time is over, the first first."""
    now = await tx.now()
    over = (grants.c.flow_key == flow_key) & (grants.c.ends_at <= now)
    query = select(grants).where(over).order_by(grants.c.ends_at, grants.c.identity)
    return [_grant(row) for row in await tx.connection.execute(query)]


async def next_end(tx: Transaction, flow_key: str) -> datetime | None:
    """Return when the next grant of a flow ends."""
    query = select(func.min(grants.c.ends_at)).where(grants.c.flow_key == flow_key)
    found: datetime | int | None = await tx.connection.scalar(query)
    return from_microseconds(found) if isinstance(found, int) else found


async def flow_of(tx: Transaction, flow_key: str) -> Flow | None:
    """Return the flow as its grants know it."""
    query = select(grants.c.flow_sid).where(grants.c.flow_key == flow_key).limit(1)
    sid = await tx.connection.scalar(query)
    return None if sid is None else Flow(sid)


def timed(some: Mapping[str, Grant]) -> dict[str, datetime]:
    """Return the ends of those that have one."""
    return {one: grant.ends_at for one, grant in some.items() if grant.ends_at is not None}


def _grant(row: Any) -> Grant:  # noqa: ANN401 - a row of the table
    return Grant(
        row.identity,
        row.request_id,
        _WHO.validate_python(row.granted_by),
        _WHOS.validate_python(row.approved_by),
        row.granted_at,
        row.ends_at,
    )
