"""Requests: stored when made, changed by conditional writes, deleted when old."""

import dataclasses
from collections.abc import Collection
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, bindparam, exists, func, select, update

from bot.approvals.rules import OVER, State
from bot.store.engine import Transaction
from bot.store.statements import insert_into, remove_some
from bot.store.tables import grants, outbox_messages, requests
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Progress, Request, RequestedChange, Who

_REQUESTED_CHANGE = TypeAdapter(RequestedChange)
_PROGRESS = TypeAdapter(Progress)
UNDER_WAY = (State.PENDING.value, State.SCHEDULED.value, State.APPLYING.value)
DECIDED = (*map(str, OVER), State.FAILED.value)


# Made once: building a statement takes longer than executing it.
_BY_ID = select(requests).where(requests.c.id == bindparam("its_id"))
_LOCKED = _BY_ID.with_for_update()
_REPLACE = update(requests).where(
    requests.c.id == bindparam("its_id"), requests.c.version == bindparam("its_version")
)
_APPLYING = (
    select(requests)
    .where(requests.c.state == State.APPLYING, requests.c.flow_key == bindparam("its_flow"))
    .order_by(requests.c.decided_at, requests.c.created_at, requests.c.id)
)
_PENDING = (
    select(requests)
    .where(requests.c.state == State.PENDING)
    .order_by(requests.c.created_at, requests.c.id)
    .limit(bindparam("most"))
    .offset(bindparam("first"))
)
_OF_REQUESTER = (
    select(requests)
    .where(
        requests.c.requester_id == bindparam("its_requester"),
        requests.c.state.in_(UNDER_WAY) | (requests.c.decided_at >= bindparam("since")),
    )
    .order_by(requests.c.created_at.desc(), requests.c.id)
    .limit(bindparam("most"))
)


async def insert(tx: Transaction, request: Request) -> bool:
    """Store a new request; return False, and store nothing, if its id is taken."""
    values = _values(request)
    statement = insert_into(requests).on_conflict_do_nothing()
    result = await tx.connection.execute(statement, values)
    return bool(result.rowcount == 1)


async def replace(tx: Transaction, request: Request) -> bool:
    """Write the request if it hasn't changed since it was read; return True if it was written.

    If several writers have read the same version, only one wins.
    """
    next_version = dataclasses.replace(request, version=request.version + 1)
    values = _values(next_version)
    unchanged = {"its_id": request.id, "its_version": request.version}
    result = await tx.connection.execute(_REPLACE, {**values, **unchanged})
    return bool(result.rowcount == 1)


async def load(tx: Transaction, request_id: str, *, lock: bool = False) -> Request | None:
    """Return the request; with `lock`, nobody else can change it until this transaction ends."""
    row = (await tx.connection.execute(_LOCKED if lock else _BY_ID, {"its_id": request_id})).first()
    return None if row is None else _request(row)


async def applying(tx: Transaction, flow_key: str) -> list[Request]:
    """Return a flow's approved requests that are not applied yet, oldest decision first."""
    return await _all(tx, _APPLYING, its_flow=flow_key)


async def pending(tx: Transaction, *, limit: int, offset: int = 0) -> list[Request]:
    """Return the requests that wait for a decision, oldest first."""
    return await _all(tx, _PENDING, most=limit, first=offset)


async def waiting(tx: Transaction, flow_key: str) -> list[Request]:
    """Return a flow's requests that wait for a decision or for their start, oldest first."""
    states = (State.PENDING.value, State.SCHEDULED.value)
    query = (
        select(requests)
        .where(requests.c.flow_key == flow_key, requests.c.state.in_(states))
        .order_by(requests.c.created_at, requests.c.id)
    )
    return await _all(tx, query)


async def naming_the_same(tx: Transaction, request: Request) -> list[Request]:
    """Return a flow's other open requests about some of the same people, oldest first."""
    people = set(request.requested.change.identities)
    return [
        other
        for other in await waiting(tx, request.flow.key)
        if other.id != request.id and not people.isdisjoint(other.requested.change.identities)
    ]


async def scheduled(tx: Transaction, flow_key: str = "") -> list[Request]:
    """Return approved requests that start later, for one flow or all, the next start first."""
    query = select(requests).where(requests.c.state == State.SCHEDULED)
    if flow_key:
        query = query.where(requests.c.flow_key == flow_key)
    found = await _all(tx, query)
    return sorted(
        found, key=lambda request: (request.requested.starts_at or request.created_at, request.id)
    )


async def of_requester(
    tx: Transaction, slack_user_id: str, *, decided_since: datetime, limit: int
) -> list[Request]:
    """Return a person's requests that are open or were decided recently, newest first."""
    parameters = {"its_requester": slack_user_id, "since": decided_since, "most": limit}
    return await _all(tx, _OF_REQUESTER, **parameters)


async def ids_in(tx: Transaction, states: Collection[State]) -> list[str]:
    """Return the ids of the requests in these states, oldest first."""
    query = select(requests.c.id).where(requests.c.state.in_([state.value for state in states]))
    return list(await tx.connection.scalars(query.order_by(requests.c.created_at, requests.c.id)))


async def count_by_rule(tx: Transaction, slack_user_id: str, rule_id: str, since: datetime) -> int:
    """Return how many of a person's requests a rule approved automatically, without failed ones."""
    query = select(func.count()).where(
        requests.c.requester_id == slack_user_id,
        requests.c.decided_by_id == rule_id,
        requests.c.created_at >= since,
        requests.c.state != State.FAILED,
    )
    return int(await tx.connection.scalar(query) or 0)


async def count_pending(tx: Transaction, slack_user_id: str = "") -> int:
    """Return the number of pending requests, of one person or all."""
    query = select(func.count()).where(requests.c.state == State.PENDING)
    if slack_user_id:
        query = query.where(requests.c.requester_id == slack_user_id)
    return int(await tx.connection.scalar(query) or 0)


async def of_flow(
    tx: Transaction, flow_key: str, *, limit: int, offset: int = 0
) -> tuple[list[Request], int]:
    """Return a page of a flow's requests, newest first, and their total number."""
    of_this_flow = requests.c.flow_key == flow_key
    query = (
        select(requests)
        .where(of_this_flow)
        .order_by(requests.c.created_at.desc(), requests.c.id)
        .limit(limit)
        .offset(offset)
    )
    total = await tx.connection.scalar(
        select(func.count()).where(of_this_flow).select_from(requests)
    )
    return await _all(tx, query), int(total or 0)


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete some closed requests that were decided before that time; return their number.

    Requests behind a grant with an end are kept, because the grant needs the card. So are requests
    with later news, such as a retry or the end of a grant, or with a message in the outbox.
    """
    old = requests.c.state.in_(DECIDED) & (requests.c.decided_at < before)
    runs_on = (grants.c.request_id == requests.c.id) & grants.c.ends_at.is_not(None)
    is_told_since = outbox_messages.c.sent_at.is_(None) | (outbox_messages.c.sent_at >= before)
    is_told = (outbox_messages.c.subject == requests.c.id) & is_told_since
    # Not with NOT IN, because PostgreSQL would scan all of them for each request.
    over = old & ~exists().where(runs_on) & ~exists().where(is_told)
    return await remove_some(tx, requests, over)


async def _all(tx: Transaction, query: Select[Any], **parameters: object) -> list[Request]:
    return [_request(row) for row in await tx.connection.execute(query, parameters)]


def _values(request: Request) -> dict[str, Any]:
    """Return the row; the whole list is kept while it may still be compared with another list."""
    by, requested = request.decided_by, request.requested
    if request.state in OVER:
        requested = dataclasses.replace(requested, seen=())
    return {
        "id": request.id,
        "flow_key": request.flow.key,
        "flow_sid": request.flow.sid,
        "flow_alias": request.flow.alias,
        "requester_id": request.requester.slack_user_id,
        "requester_name": request.requester.name,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "requested": _REQUESTED_CHANGE.dump_python(requested, mode="json"),
        "state": request.state.value,
        "version": request.version,
        "decided_by_id": by and by.slack_user_id,
        "decided_by_name": by and by.name,
        "decided_at": request.decided_at,
        "progress": _PROGRESS.dump_python(request.progress, mode="json"),
    }


def _request(row: Any) -> Request:  # noqa: ANN401 - a row of the table
    decided_by = Who(row.decided_by_id, row.decided_by_name) if row.decided_by_id else None
    return Request(
        row.id,
        Flow(row.flow_sid, row.flow_alias),
        Who(row.requester_id, row.requester_name),
        _REQUESTED_CHANGE.validate_python(row.requested),
        row.created_at,
        row.expires_at,
        State(row.state),
        _PROGRESS.validate_python(row.progress),
        decided_by,
        row.decided_at,
        row.version,
    )
