"""Grants: the people added by a request, until their access ends."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, bindparam, delete, select

from bot.store.engine import Transaction
from bot.store.statements import upsert
from bot.store.tables import grants, requests
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant, Who

OwnGrant = tuple[Flow, Grant]
_WHO = TypeAdapter(Who)
_WHOS = TypeAdapter(tuple[Who, ...])


# Made once: building a statement takes longer than executing it.
_OF_FLOW = select(grants).where(grants.c.flow_key == bindparam("its_flow"))
_DUE = _OF_FLOW.where(grants.c.ends_at <= bindparam("now")).order_by(
    grants.c.ends_at, grants.c.identity
)
_OF_REQUESTER = (
    select(grants, requests.c.flow_alias)
    .join(requests, requests.c.id == grants.c.request_id)
    .where(requests.c.requester_id == bindparam("its_requester"))
    .order_by(grants.c.ends_at.is_(None), grants.c.ends_at, grants.c.identity)
    .limit(bindparam("most"))
)
_TIMED_OF_REQUESTER = _OF_REQUESTER.where(grants.c.ends_at.is_not(None))


async def put(tx: Transaction, flow: Flow, grant: Grant) -> None:
    """Store the grant, replacing the person's earlier grant."""
    stored = {
        "flow_key": flow.key,
        "identity": grant.identity,
        "flow_sid": flow.sid,
        "request_id": grant.request_id,
        "granted_by": _WHO.dump_python(grant.granted_by, mode="json"),
        "approved_by": _WHOS.dump_python(grant.approved_by, mode="json"),
        "granted_at": grant.granted_at,
        "ends_at": grant.ends_at,
    }
    await upsert(tx, grants, stored)


async def drop(tx: Transaction, flow_key: str, identity: str) -> None:
    """Remove a person's grant, if any."""
    of_person = (grants.c.flow_key == flow_key) & (grants.c.identity == identity)
    await tx.connection.execute(delete(grants).where(of_person))


async def of_flow(tx: Transaction, flow_key: str) -> dict[str, Grant]:
    """Return a flow's grants by identity."""
    return {grant.identity: grant for grant in await _all(tx, _OF_FLOW, its_flow=flow_key)}


async def due(tx: Transaction, flow_key: str) -> list[Grant]:
    """Return a flow's expired grants, the earliest end first."""
    return await _all(tx, _DUE, its_flow=flow_key, now=await tx.now())


async def next_end(tx: Transaction, flow_key: str) -> datetime | None:
    """Return the next future end of a flow's grants."""
    later = (grants.c.flow_key == flow_key) & (grants.c.ends_at > await tx.now())
    query = select(grants.c.ends_at).where(later).order_by(grants.c.ends_at).limit(1)
    found: datetime | None = await tx.connection.scalar(query)
    return found


async def of_requester(
    tx: Transaction, slack_user_id: str, *, limit: int, only_timed: bool = False
) -> list[OwnGrant]:
    """Return the grants that a person requested, the next end first, grants without an end last."""
    parameters = {"its_requester": slack_user_id, "most": limit}
    query = _TIMED_OF_REQUESTER if only_timed else _OF_REQUESTER
    rows = await tx.connection.execute(query, parameters)
    return [(Flow(row.flow_sid, row.flow_alias), _grant(row)) for row in rows]


async def of_request(tx: Transaction, request_id: str) -> list[Grant]:
    """Return a request's current grants, the next end first."""
    query = select(grants).where(grants.c.request_id == request_id)
    return await _all(tx, query.order_by(grants.c.ends_at, grants.c.identity))


async def ending_after(tx: Transaction, after: datetime) -> dict[str, list[Grant]]:
    """Return the grants that end after a time, by the request that created them."""
    found: dict[str, list[Grant]] = {}
    for grant in await _all(tx, select(grants).where(grants.c.ends_at > after)):
        found.setdefault(grant.request_id, []).append(grant)
    return found


async def flow_of(tx: Transaction, flow_key: str) -> Flow | None:
    """Return the flow whose grants have this key."""
    query = select(grants.c.flow_sid).where(grants.c.flow_key == flow_key).limit(1)
    sid = await tx.connection.scalar(query)
    return None if sid is None else Flow(sid)


def timed(granted: Mapping[str, Grant]) -> dict[str, datetime]:
    """Return the ends of grants that have an end."""
    return {
        identity: grant.ends_at for identity, grant in granted.items() if grant.ends_at is not None
    }


async def _all(tx: Transaction, query: Select[Any], **parameters: object) -> list[Grant]:
    return [_grant(row) for row in await tx.connection.execute(query, parameters)]


def _grant(row: Any) -> Grant:  # noqa: ANN401 - a row of the table
    return Grant(
        row.identity,
        row.request_id,
        _WHO.validate_python(row.granted_by),
        _WHOS.validate_python(row.approved_by),
        row.granted_at,
        row.ends_at,
    )
