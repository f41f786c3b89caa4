"""Requests: stored when asked, moved by conditional writes, forgotten when they are old."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.approval import TRANSITIONS, State
from bot.model.requests import Progress, Request, Who, Wish
from bot.model.testusers import Flow
from bot.store.engine import Transaction
from bot.store.tables import grants, letters, requests

_WISH = TypeAdapter(Wish)
_PROGRESS = TypeAdapter(Progress)
DECIDED = (*(state.value for state, ends in TRANSITIONS.items() if not ends), State.FAILED.value)


async def insert(tx: Transaction, request: Request) -> bool:
    """Store a new request; return False, and store nothing, when there is one of its id."""
    values = {
        "id": request.id,
        "flow_key": request.flow.key,
        "flow_sid": request.flow.sid,
        "flow_alias": request.flow.alias,
        "requester_id": request.requester.slack_user_id,
        "requester_name": request.requester.name,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "wish": _WISH.dump_python(request.wish, mode="json"),
        **_changing(request),
    }
    statement = postgresql.insert(requests) if tx.is_postgres else sqlite.insert(requests)
    result = await tx.connection.execute(statement.values(values).on_conflict_do_nothing())
    return bool(result.rowcount == 1)


async def replace(tx: Transaction, request: Request) -> bool:
    """Write what has changed if nobody has written since it was read; return whether it was so.

    Of several writers that read the same version, one wins.
    """
    values = {**_changing(request), "version": request.version + 1}
    unchanged = (requests.c.id == request.id) & (requests.c.version == request.version)
    result = await tx.connection.execute(update(requests).where(unchanged).values(values))
    return bool(result.rowcount == 1)


async def load(tx: Transaction, request_id: str, *, lock: bool = False) -> Request | None:
    """Return the request; with `lock` nobody else writes it before this transaction ends."""
    query = select(requests).where(requests.c.id == request_id)
    row = (await tx.connection.execute(query.with_for_update() if lock else query)).first()
    return None if row is None else _request(row)


async def applying(tx: Transaction, flow_key: str) -> list[Request]:
    """Return the approved requests of a flow that are not applied yet, oldest decision first."""
    query = (
        select(requests)
        .where(requests.c.state == State.APPLYING, requests.c.flow_key == flow_key)
        .order_by(requests.c.decided_at, requests.c.created_at, requests.c.id)
    )
    return await _all(tx, query)


async def pending(tx: Transaction, *, limit: int, offset: int = 0) -> list[Request]:
    """Return the requests that wait for a decision, oldest first."""
    query = (
        select(requests)
        .where(requests.c.state == State.PENDING)
        .order_by(requests.c.created_at, requests.c.id)
    )
    return await _all(tx, query.limit(limit).offset(offset))


async def count_pending(tx: Transaction) -> int:
    """Return how many requests wait for a decision."""
    query = select(func.count()).where(requests.c.state == State.PENDING)
    return int(await tx.connection.scalar(query) or 0)


async def of_flow(
    tx: Transaction, flow_key: str, *, limit: int, offset: int = 0
) -> tuple[list[Request], int]:
    """Return a page of a flow's requests, newest first, and how many there are in all."""
    mine = requests.c.flow_key == flow_key
    query = (
        select(requests)
        .where(mine)
        .order_by(requests.c.created_at.desc(), requests.c.id)
        .limit(limit)
        .offset(offset)
    )
    total = await tx.connection.scalar(select(func.count()).where(mine).select_from(requests))
    return await _all(tx, query), int(total or 0)


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove what was decided before that time and is over since then; return how many.

    A grant of it that has an end still wants its card then. And what was told of it later, or is
    yet to be told, says that it went on: a failure that was retried, a grant that ended.
    """
    old = requests.c.state.in_(DECIDED) & (requests.c.decided_at < before)
    running = select(grants.c.request_id).where(grants.c.ends_at.is_not(None))
    is_told_since = letters.c.sent_at.is_(None) | (letters.c.sent_at >= before)
    told_since = select(letters.c.subject).where(is_told_since)
    is_over = requests.c.id.not_in(running) & requests.c.id.not_in(told_since)
    return int((await tx.connection.execute(delete(requests).where(old & is_over))).rowcount)


async def _all(tx: Transaction, query: Select[Any]) -> list[Request]:
    return [_request(row) for row in await tx.connection.execute(query)]


def _changing(request: Request) -> dict[str, Any]:
    by = request.decided_by
    return {
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
        _WISH.validate_python(row.wish),
        row.created_at,
        row.expires_at,
        State(row.state),
        _PROGRESS.validate_python(row.progress),
        decided_by,
        row.decided_at,
        row.version,
    )


def ids(some: Sequence[Request]) -> tuple[str, ...]:
    """Return their ids."""
    return tuple(request.id for request in some)
