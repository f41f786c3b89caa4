"""Database queries for requests, grants, POSTs in doubt, and changes to lists."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, delete, exists, func, select, update

from bot.approvals.rules import OVER, State
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import Change
from bot.store import outbox
from bot.store.engine import Transaction, remove_some, upsert
from bot.store.tables import outbox_messages
from bot.testusers.rules.applying import Post
from bot.testusers.rules.requests import (
    Grant,
    RecordedChange,
    Request,
    Who,
)
from bot.testusers.tables import flow_changes, flow_posts, grants, requests

# The start of a card's key. The request's ID follows.
CARD_PREFIX = "request:"
CARD_IS_NEEDED = outbox.shows(CARD_PREFIX, requests.c.id)
OwnGrant = tuple[Flow, Grant]
DECIDED = (*OVER, State.FAILED)
_REQUEST = TypeAdapter(Request)
_GRANT = TypeAdapter(Grant)
_POST = TypeAdapter(Post)
_OLDEST = (requests.c.created_at, requests.c.id)
_NEWEST = (requests.c.created_at.desc(), requests.c.id)


async def add_request(tx: Transaction, request: Request) -> None:
    """Store a new request."""
    await tx.write(requests.insert(), _row_of(request))


async def save_request(tx: Transaction, request: Request) -> bool:
    """Write the request and return True, or return False if its stored version has changed.

    If several writers have read the same version, only the first write succeeds.
    """
    next_version = replace(request, version=request.version + 1)
    is_unchanged = (requests.c.id == request.id) & (requests.c.version == request.version)
    query = update(requests).where(is_unchanged).values(_row_of(next_version))
    result = await tx.connection.execute(query)
    return bool(result.rowcount == 1)


async def load_request(tx: Transaction, request_id: str, *, lock: bool = False) -> Request | None:
    """Return the request, or None if it doesn't exist. If `lock` is set, lock its row."""
    query = select(requests).where(requests.c.id == request_id)
    row = (await tx.connection.execute(query.with_for_update() if lock else query)).first()
    return None if row is None else _request(row)


async def requests_in(tx: Transaction, *states: State, flow_key: str = "") -> list[Request]:
    """Return the requests in these states, for one flow or all flows, oldest first."""
    of_flow = [requests.c.flow_key == flow_key] if flow_key else []
    return await _requests(tx, requests.c.state.in_(states), *of_flow)


async def pending(tx: Transaction, *, limit: int, offset: int) -> tuple[list[Request], int]:
    """Return a page of the pending requests, oldest first, and the number of pending requests."""
    is_pending = requests.c.state == State.PENDING
    found = await _requests(tx, is_pending, limit=limit, offset=offset)
    return found, await count_pending(tx)


async def pending_near(tx: Transaction, flow_key: str, slack_user_id: str) -> list[Request]:
    """Return the pending requests for a flow and those of a person, oldest first."""
    is_near = (requests.c.flow_key == flow_key) | (requests.c.requester_id == slack_user_id)
    return await _requests(tx, requests.c.state == State.PENDING, is_near)


async def load_with_waiting(tx: Transaction, request_id: str) -> dict[str, Request]:
    """Return the request and its flow's pending requests, keyed by ID, oldest first."""
    flow_key = select(requests.c.flow_key).where(requests.c.id == request_id).scalar_subquery()
    is_waiting = (requests.c.state == State.PENDING) & (requests.c.flow_key == flow_key)
    found = await _requests(tx, (requests.c.id == request_id) | is_waiting)
    return {request.id: request for request in found}


async def requests_of(
    tx: Transaction, slack_user_id: str, decided_since: datetime
) -> list[Request]:
    """Return a person's requests that are open or were decided since this time, newest first."""
    is_recent = requests.c.state.not_in(DECIDED) | (requests.c.decided_at >= decided_since)
    is_own = requests.c.requester_id == slack_user_id
    return await _requests(tx, is_own, is_recent, order=_NEWEST)


async def requests_with(tx: Transaction, request_ids: Collection[str]) -> list[Request]:
    """Return the requests with these IDs, oldest first."""
    return await _requests(tx, requests.c.id.in_(request_ids))


async def count_by_rule(tx: Transaction, slack_user_id: str, rule_id: str, since: datetime) -> int:
    """Count a person's requests that a rule approved since this time, excluding failed requests."""
    return await _count(
        tx,
        requests.c.requester_id == slack_user_id,
        requests.c.decided_by_id == rule_id,
        requests.c.created_at >= since,
        requests.c.state != State.FAILED,
    )


async def count_pending(tx: Transaction) -> int:
    """Return the number of pending requests."""
    return await _count(tx, requests.c.state == State.PENDING)


async def _count(tx: Transaction, *where: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(requests).where(*where)
    return int(await tx.connection.scalar(query) or 0)


async def requests_of_flow(
    tx: Transaction, flow_key: str, *, limit: int, offset: int = 0
) -> tuple[list[Request], int]:
    """Return a page of a flow's requests, newest first, and the flow's total number of requests."""
    of_flow = requests.c.flow_key == flow_key
    total = await _count(tx, of_flow)
    found = await _requests(tx, of_flow, order=_NEWEST, limit=limit, offset=offset)
    return found, total


async def flow_of(tx: Transaction, flow_key: str) -> Flow:
    """Return the flow with this key. Its SID and alias come from its latest request, if any."""
    found = await _requests(tx, requests.c.flow_key == flow_key, order=_NEWEST, limit=1)
    return found[0].flow if found else Flow(flow_key)


async def forget_requests(tx: Transaction, before: datetime) -> int:
    """Delete a batch of requests that were closed before this time. Return the number deleted.

    A request is kept while it has a grant that will end, because its card announces the end. It's
    also kept if a message about it hasn't been sent yet, or was sent at or after this time.
    """
    old = requests.c.state.in_(DECIDED) & (requests.c.decided_at < before)
    runs_on = (grants.c.request_id == requests.c.id) & grants.c.ends_at.is_not(None)
    is_told_since = outbox_messages.c.sent_at.is_(None) | (outbox_messages.c.sent_at >= before)
    is_told = (outbox_messages.c.subject == requests.c.id) & is_told_since
    # Use NOT EXISTS, because NOT IN makes PostgreSQL scan all grants for each request.
    over = old & ~exists().where(runs_on) & ~exists().where(is_told)
    return await remove_some(tx, requests, over)


async def _requests(
    tx: Transaction,
    *where: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]] = _OLDEST,
    limit: int | None = None,
    offset: int | None = None,
) -> list[Request]:
    query = select(requests).where(*where).order_by(*order).limit(limit).offset(offset)
    return [_request(row) for row in await tx.connection.execute(query)]


def _row_of(request: Request) -> dict[str, Any]:
    """Return the request's row. For a closed request, the list it was compared with is left out."""
    by = request.round.decided_by
    stored = _REQUEST.dump_python(request, mode="json")
    compared = stored["requested"].pop("compared")
    del stored["round"]["decided_by"], stored["round"]["decided_at"]
    if request.state in OVER:
        compared["seen"] = []
    return {
        "id": request.id,
        "flow_key": request.flow.key,
        "flow_sid": request.flow.sid,
        "flow_alias": request.flow.alias,
        "requester_id": request.requester.slack_user_id,
        "requester_name": request.requester.name,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "requested": stored["requested"] | compared,
        "state": request.state.value,
        "version": request.version,
        "decided_by_id": by and by.slack_user_id,
        "decided_by_name": by and by.name,
        "decided_at": request.round.decided_at,
        "progress": stored["round"] | stored["attempts"] | stored["result"],
    }


def _request(row: Any) -> Request:  # noqa: ANN401 - a row of the table
    decided_by = Who(row.decided_by_id, row.decided_by_name) if row.decided_by_id else None
    stored = {
        **row._asdict(),
        "flow": Flow(row.flow_sid, row.flow_alias),
        "requester": Who(row.requester_id, row.requester_name),
        "requested": {**row.requested, "compared": row.requested},
        "round": {**row.progress, "decided_by": decided_by, "decided_at": row.decided_at},
        "attempts": row.progress,
        "result": row.progress,
    }
    return _REQUEST.validate_python(stored)


async def save_grants(
    tx: Transaction, flow: Flow, granted: Mapping[str, Grant], identities: Collection[str]
) -> None:
    """Store these people's grants for a flow, and delete those of people not in `granted`."""
    for identity in identities:
        of_person = (grants.c.flow_key == flow.key) & (grants.c.identity == identity)
        await tx.write(delete(grants).where(of_person))
        if grant := granted.get(identity):
            stored = {"flow_key": flow.key, "flow_sid": flow.sid, **_GRANT.dump_python(grant)}
            await tx.write(grants.insert(), stored)


async def grants_of_flow(tx: Transaction, flow_key: str) -> dict[str, Grant]:
    """Return a flow's grants, keyed by identity, soonest end first."""
    query = select(grants).where(grants.c.flow_key == flow_key).order_by(*_NEXT_END)
    return {row.identity: _grant(row) for row in await tx.connection.execute(query)}


async def granted_flows(tx: Transaction) -> list[str]:
    """Return the SIDs of all flows with grants."""
    return list(await tx.connection.scalars(select(grants.c.flow_sid).distinct()))


async def grants_of(tx: Transaction, slack_user_id: str) -> list[OwnGrant]:
    """Return the grants that a person requested, soonest end first. Endless grants come last."""
    query = (
        select(grants, requests.c.flow_alias)
        .join(requests, requests.c.id == grants.c.request_id)
        .where(requests.c.requester_id == slack_user_id)
        .order_by(*_NEXT_END)
    )
    rows = await tx.connection.execute(query)
    return [(Flow(row.flow_sid, row.flow_alias), _grant(row)) for row in rows]


_NEXT_END = (grants.c.ends_at.is_(None), grants.c.ends_at, grants.c.identity)


def _grant(row: Any) -> Grant:  # noqa: ANN401 - a row of the table
    return _GRANT.validate_python(row._asdict())


async def post_of(tx: Transaction, flow_key: str) -> Post | None:
    """Return the flow's POST with an unknown outcome, or None if there's none."""
    of_flow = select(flow_posts.c.content).where(flow_posts.c.flow_key == flow_key)
    # Earlier versions could store several POSTs. Only the last one counts.
    content = await tx.connection.scalar(of_flow.order_by(flow_posts.c.sent_at.desc()).limit(1))
    return _POST.validate_python(content) if content else None


async def keep_post(tx: Transaction, flow_key: str, post: Post | None) -> None:
    """Store a POST until its outcome is known, or delete the stored POST if `post` is None."""
    if post is None:
        await tx.write(delete(flow_posts).where(flow_posts.c.flow_key == flow_key))
        return
    content = _POST.dump_python(post, mode="json")
    stored = {"id": post.plan.id, "flow_key": flow_key, "sent_at": post.sent_at, "content": content}
    await upsert(tx, flow_posts, stored)


async def record_change(tx: Transaction, flow_key: str, change: Change) -> None:
    """Record the bot's change to a list."""
    values = {"flow_key": flow_key, "at": await tx.now(), "content": asdict(change)}
    await tx.write(flow_changes.insert().inline(), values)


async def forget_changes(tx: Transaction, before: datetime) -> int:
    """Delete a batch of changes before this time, except the latest. Return the number deleted."""
    last = select(func.max(flow_changes.c.id)).scalar_subquery()
    return await remove_some(
        tx, flow_changes, (flow_changes.c.at < before) & (flow_changes.c.id < last)
    )


async def changes_after(tx: Transaction, flow_key: str, change_id: int) -> list[RecordedChange]:
    """Return the bot's changes to a flow's list after the change with this ID, oldest first."""
    later = (flow_changes.c.flow_key == flow_key) & (flow_changes.c.id > change_id)
    query = select(flow_changes).where(later).order_by(flow_changes.c.id)
    return [_recorded(row) for row in await tx.connection.execute(query)]


async def recent_changes(
    tx: Transaction, flow_key: str, since: datetime
) -> tuple[list[Change], int]:
    """Return the bot's changes to a flow's list since this time, newest first.

    Also return the ID of its latest change, or 0 if there's none.
    """
    of_flow = flow_changes.c.flow_key == flow_key
    latest = select(func.max(flow_changes.c.id)).where(of_flow).scalar_subquery()
    is_recent = of_flow & ((flow_changes.c.at > since) | (flow_changes.c.id == latest))
    query = select(flow_changes).where(is_recent).order_by(flow_changes.c.id.desc())
    found = [_recorded(row) for row in await tx.connection.execute(query)]
    recent = [recorded.change for recorded in found if recorded.at > since]
    return recent, found[0].id if found else 0


def _recorded(row: Any) -> RecordedChange:  # noqa: ANN401 - a row of the table
    change = Change(tuple(row.content["additions"]), tuple(row.content["removals"]))
    return RecordedChange(row.id, row.at, change)
