"""Queries of requests, of people's access, and of POSTs in doubt.

Only `bot.testusers.work` writes requests and their people.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    union,
)

from bot.approvals.rules import OVER, State
from bot.flows.rules import CONFIRMED, Flow, FlowList, plain
from bot.flows.store import FLOW, LAST_BEFORE, OF_FLOW, list_of
from bot.flows.tables import flow_lists
from bot.store import outbox
from bot.store.engine import BATCH, Transaction
from bot.store.postgres import NOW
from bot.store.tables import outbox_messages
from bot.testusers.rules.applying import ListChangePlan
from bot.testusers.rules.people import Access, Did, RequestPerson
from bot.testusers.rules.requests import Request, Who
from bot.testusers.tables import HAS_ACCESS, flow_posts, has_access, request_people, requests

# The columns of the tables that the queries are about.
REQUEST, PERSON = requests.c, request_people.c
LIST, POST = flow_lists.c, flow_posts.c
# The start of a card's key. The request's ID follows.
CARD_PREFIX = "request:"
CARD_IS_NEEDED = outbox.shows(CARD_PREFIX, REQUEST.id)
OPEN = (State.PENDING, State.APPLYING)
DECIDED = (*OVER, State.FAILED)
GIVEN_UP = (State.DENIED, State.CANCELLED, State.EXPIRED)
_REQUEST = TypeAdapter(Request)
_PLAN = TypeAdapter(ListChangePlan)
_PERSON_FIELDS = [field.name for field in fields(RequestPerson)]
_STORED_FIELDS = [name for name in _PERSON_FIELDS if name in PERSON]
_SAME_FIELDS = ("id", "state", "version", "created_at", "expires_at", "undo_of", "list_id")


def _is_one_of(state: ColumnElement[str], states: Iterable[State]) -> ColumnElement[bool]:
    # SQLAlchemy writes the parameters of IN into the SQL anew each time, but not constants.
    return state.in_([literal_column(f"'{one}'") for one in states])


_IS_OPEN = _is_one_of(REQUEST.state, OPEN)
_OLDEST = (REQUEST.created_at, REQUEST.id)
_NEWEST = (REQUEST.created_at.desc(), REQUEST.id)

# Statements that never change are built once, because building them takes longer than executing.
_UNDO = requests.alias("undo")
_UNDO_STATE = select(func.max(_UNDO.c.state)).where(
    _UNDO.c.undo_of == REQUEST.id, ~_is_one_of(_UNDO.c.state, GIVEN_UP)
)
# Somebody's present access isn't stored with the requests that would change it.
_PRESENT = request_people.alias("present")
_IS_PRESENT = (
    (PERSON.did == "open")
    & (_PRESENT.c.flow_key == PERSON.flow_key)
    & (_PRESENT.c.spelling == PERSON.spelling)
    & has_access(_PRESENT)
)
# One row for each person of a request.
_REQUESTS = (
    select(
        requests,
        _UNDO_STATE.scalar_subquery().label("undo"),
        *(PERSON[name].label(f"person_{name}") for name in _STORED_FIELDS),
        _PRESENT.c.ends_at.label("person_current_end"),
    )
    .select_from(
        requests.outerjoin(request_people, PERSON.request_id == REQUEST.id).outerjoin(
            _PRESENT, _IS_PRESENT
        )
    )
    .order_by(*_OLDEST, PERSON.position)
)
_HAS_ID = REQUEST.id.in_(bindparam("its_ids", expanding=True))
_BY_ID = _REQUESTS.where(_HAS_ID)
_IN_FLOW = PERSON.flow_key == bindparam("its_flow")
_IS_ONE_OF_THEM = PERSON.person.in_(bindparam("its_people", expanding=True))
_ACCESS = (
    select(
        PERSON.request_id,
        PERSON.spelling,
        PERSON.did_at.label("since"),
        PERSON.ends_at,
    )
    .where(HAS_ACCESS)
    .order_by(
        PERSON.ends_at.is_(None),
        PERSON.ends_at,
        PERSON.request_id,
        PERSON.position,
    )
)
_ACCESS_IN_FLOW = _ACCESS.where(_IN_FLOW)
_ACCESS_OF_THEM = _ACCESS_IN_FLOW.where(_IS_ONE_OF_THEM)
_NAMES_THEM = exists().where(PERSON.request_id == REQUEST.id, _IS_ONE_OF_THEM)
_FOR_THEM = (REQUEST.flow_key == bindparam("its_flow")) & _NAMES_THEM
_PENDING_FOR_THEM = (
    select(REQUEST.id).where(REQUEST.state == State.PENDING, _FOR_THEM).order_by(*_OLDEST)
)
_THEIRS = request_people.alias("theirs")
_NAMES_THE_SAME = exists().where(
    PERSON.request_id == REQUEST.id,
    PERSON.flow_key == _THEIRS.c.flow_key,
    PERSON.person == _THEIRS.c.person,
    _THEIRS.c.request_id == bindparam("its_id"),
)
_THIS_OR_RELATED = union(
    select(REQUEST.id).where(REQUEST.id == bindparam("its_id")),
    select(REQUEST.id).where(_IS_OPEN, _NAMES_THE_SAME),
)
_LATEST_LIST = (
    select(LIST.identities)
    .where(LIST.flow_key == REQUEST.flow_key)
    .order_by(LIST.id.desc())
    .limit(1)
    .scalar_subquery()
)
# Only one row has the list, because it can be long. A failed request can be retried.
_SHOWS_LIST = and_(
    REQUEST.id == bindparam("its_id"),
    _is_one_of(REQUEST.state, (*OPEN, State.FAILED)),
    func.coalesce(PERSON.position, 0) == 0,
)
_AND_RELATED = _REQUESTS.add_columns(case((_SHOWS_LIST, _LATEST_LIST)).label("listed")).where(
    REQUEST.id.in_(_THIS_OR_RELATED)
)
_IS_OWN = REQUEST.requester_id == bindparam("its_requester")
_NEAR = (
    select(REQUEST.id, REQUEST.state, _IS_OWN.label("is_own"), _FOR_THEM.label("is_for_them"))
    .where(_IS_OPEN, _FOR_THEM | _IS_OWN)
    .order_by(*_OLDEST)
)
# What stands for people of these requests. For conditions with OR, PostgreSQL would read all
# requests.
_THEIR_PEOPLE = select(_THEIRS.c.person).where(
    _THEIRS.c.request_id.in_(bindparam("its_ids", expanding=True))
)
_STANDS_FOR_THEM = select(PERSON.request_id).where(
    _IN_FLOW,
    PERSON.person.in_(_THEIR_PEOPLE),
    PERSON.did == "made",
    PERSON.over.is_(None),
)
_CONCERNED = _REQUESTS.where(
    REQUEST.id.in_(select(REQUEST.id).where(_HAS_ID).union(_STANDS_FOR_THEM))
)
_HOLD_FLOW = text(
    f"{NOW} FROM requests, pg_advisory_xact_lock(hashtextextended('{FLOW}' || flow_key, 0))"
    " WHERE requests.id = :its_id"
)


def person_key(spelling: str) -> str:
    """Return the key that all spellings of a person have in the table of people.

    It's a hash, because an index can't contain very long texts.
    """
    return sha256(plain(spelling).encode("utf-8", "surrogatepass")).hexdigest()


async def load_request(tx: Transaction, request_id: str) -> Request | None:
    """Return the request, or None if it doesn't exist."""
    return next(iter(await requests_with(tx, [request_id])), None)


async def requests_with(tx: Transaction, request_ids: Collection[str]) -> list[Request]:
    """Return the requests with these IDs, oldest first."""
    return await _load(tx, _BY_ID, {"its_ids": list(request_ids)}) if request_ids else []


async def and_related(
    tx: Transaction, request_id: str, *, is_locked: bool = False
) -> tuple[Request | None, list[Request], Sequence[str]]:
    """Return the request, or None if it doesn't exist, and other open requests for its people.

    If the request is open or has failed, also return its flow's latest list, which is empty if none
    is known. With `is_locked`, lock the request's flow first, as `lock_flow` does. The requests are
    loaded in a statement of its own, which sees what was stored while this one waited for the lock.
    """
    if is_locked and tx.is_postgres:
        await tx.write(_HOLD_FLOW, {"its_id": request_id})
    rows = (await tx.execute(_AND_RELATED, {"its_id": request_id})).all()
    loaded = _requests_of(rows)
    request = next((one for one in loaded if one.id == request_id), None)
    listed = next((row.listed for row in rows if row.listed is not None), ())
    return request, [one for one in loaded if one is not request], listed


async def concerned(tx: Transaction, flow_key: str, request_ids: Collection[str]) -> list[Request]:
    """Return a flow's requests with these IDs, and those whose changes for their people stand."""
    return await _load(tx, _CONCERNED, {"its_ids": [*request_ids], "its_flow": flow_key})


async def requests_in(tx: Transaction, *states: State, flow_key: str = "") -> list[Request]:
    """Return the requests in these states, for one flow or all flows, oldest first."""
    of_flow = [REQUEST.flow_key == flow_key] if flow_key else []
    return await _load(tx, _REQUESTS.where(REQUEST.state.in_(states), *of_flow))


async def shown_as_open(tx: Transaction, now: datetime) -> list[Request]:
    """Return the requests whose cards may need a new text after the settings have changed."""
    failed_lately = (REQUEST.state == State.FAILED) & (REQUEST.expires_at > now)
    return await _load(tx, _REQUESTS.where(_IS_OPEN | failed_lately))


async def pending_for(tx: Transaction, flow_key: str, spellings: Iterable[str]) -> list[str]:
    """Return the IDs of a flow's pending requests for any of these people, oldest first."""
    return [*await tx.scalars(_PENDING_FOR_THEM, _of_people(flow_key, spellings))]


async def open_near(
    tx: Transaction, flow_key: str, spellings: Iterable[str], slack_user_id: str
) -> tuple[list[Request], int]:
    """Return the open requests for these people, and the number of a person's pending requests."""
    values = {**_of_people(flow_key, spellings), "its_requester": slack_user_id}
    rows = await tx.execute(_NEAR, values)
    own_pending = 0
    ids = list[str]()
    for row in rows:
        own_pending += row.is_own and row.state == State.PENDING
        if row.is_for_them:
            ids.append(row.id)
    return await requests_with(tx, ids), own_pending


async def requests_of(
    tx: Transaction, slack_user_id: str, decided_since: datetime
) -> list[Request]:
    """Return a person's requests that are open or were decided since this time, newest first."""
    is_recent = _IS_OPEN | (REQUEST.decided_at >= decided_since)
    is_own = REQUEST.requester_id == slack_user_id
    return (await _load(tx, _REQUESTS.where(is_own, is_recent)))[::-1]


async def count_by_rule(tx: Transaction, slack_user_id: str, rule_id: str, since: datetime) -> int:
    """Count a person's requests that a rule approved since this time.

    Failed requests that have changed nothing are excluded.
    """
    of_request = PERSON.request_id == REQUEST.id
    has_effect = select(request_people).where(of_request, PERSON.did == Did.MADE).exists()
    return await tx.count(
        REQUEST.requester_id == slack_user_id,
        REQUEST.decided_by_id == rule_id,
        REQUEST.created_at >= since,
        (REQUEST.state != State.FAILED) | has_effect,
    )


async def count_pending(tx: Transaction) -> int:
    """Return the number of pending requests."""
    return await tx.count(REQUEST.state == State.PENDING)


async def requests_of_flow(
    tx: Transaction, flow_key: str, *, limit: int, offset: int = 0
) -> tuple[list[Request], int]:
    """Return a page of a flow's requests, newest first, and the flow's total number of requests.

    Requests of which only the access is known aren't included (see migration 0029).
    """
    is_known = (REQUEST.state != State.APPLIED) | REQUEST.decided_at.is_not(None)
    where = (REQUEST.flow_key == flow_key, is_known)
    page = select(REQUEST.id).where(*where).order_by(*_NEWEST).limit(limit).offset(offset)
    oldest_first = await _load(tx, _REQUESTS.where(REQUEST.id.in_(page)))
    return oldest_first[::-1], await tx.count(*where)


async def flow_of(tx: Transaction, flow_key: str) -> Flow:
    """Return the flow with this key. Its SID and alias come from its latest request, if any."""
    row = (await tx.execute(_newest(flow_key))).first()
    return Flow(row.flow_sid, row.flow_alias) if row else Flow(flow_key)


def _newest(flow_key: str | ColumnElement[str]) -> Select[Any]:
    return select(requests).where(REQUEST.flow_key == flow_key).order_by(*_NEWEST).limit(1)


async def forget_requests(tx: Transaction, before: datetime) -> int:
    """Delete a batch of requests that were closed before this time. Return the number deleted.

    A request is kept as long as somebody has access by it. It's also kept if a message about it
    hasn't been sent yet, or was sent at or after this time.
    """
    is_carried_over = (REQUEST.state == State.APPLIED) & REQUEST.decided_at.is_(None)
    is_old = REQUEST.state.in_(DECIDED) & (REQUEST.decided_at < before) | is_carried_over
    gives_access = (PERSON.request_id == REQUEST.id) & HAS_ACCESS
    is_told_since = outbox_messages.c.sent_at.is_(None) | (outbox_messages.c.sent_at >= before)
    is_told = (outbox_messages.c.subject == REQUEST.id) & is_told_since
    # Use NOT EXISTS, because NOT IN makes PostgreSQL scan all people for each request.
    over = is_old & ~exists().where(gives_access) & ~exists().where(is_told)
    ids = [*await tx.scalars(select(REQUEST.id).where(over).limit(BATCH))]
    await tx.write(delete(request_people).where(PERSON.request_id.in_(ids)))
    await tx.write(delete(requests).where(REQUEST.id.in_(ids)))
    return len(ids)


async def _load(
    tx: Transaction, query: Select[Any], values: Mapping[str, Any] | None = None
) -> list[Request]:
    return _requests_of(await tx.execute(query, values))


def _requests_of(found: Iterable[Any]) -> list[Request]:
    """Return the requests in rows of `_REQUESTS`."""
    loaded = list[Request]()
    # The rows of a request are adjacent, and each has the request's columns.
    for _, rows in groupby(found, attrgetter("id")):
        people = list[dict[str, Any]]()
        for row in rows:
            if row.person_identity is not None:
                people.append({name: getattr(row, f"person_{name}") for name in _PERSON_FIELDS})
        by = Who(row.decided_by_id, row.decided_by_name) if row.decided_by_id else None
        stored = {
            **row._asdict(),
            "flow": Flow(row.flow_sid, row.flow_alias),
            "requester": Who(row.requester_id, row.requester_name),
            "people": people,
            "round": {**row.progress, "decided_by": by, "decided_at": row.decided_at},
            "attempts": row.progress,
            "result": row.progress,
        }
        loaded.append(_REQUEST.validate_python(stored))
    return loaded


def row_of(request: Request) -> dict[str, Any]:
    """Return a request's row, without its people."""
    by = request.round.decided_by
    stored = _REQUEST.dump_python(
        request, mode="json", exclude={"people": True, "round": {"decided_by", "decided_at"}}
    )
    return {
        **{name: getattr(request, name) for name in _SAME_FIELDS},
        "flow_key": request.flow.key,
        "flow_sid": request.flow.sid,
        "flow_alias": request.flow.alias,
        "requester_id": request.requester.slack_user_id,
        "requester_name": request.requester.name,
        "decided_by_id": by and by.slack_user_id,
        "decided_by_name": by and by.name,
        "decided_at": request.round.decided_at,
        "requested": stored["requested"],
        "progress": stored["round"] | stored["attempts"] | stored["result"],
    }


def person_row(request: Request, position: int) -> dict[str, Any]:
    """Return the row of a request's person."""
    person = request.people[position]
    return {
        "request_id": request.id,
        "position": position,
        "flow_key": request.flow.key,
        "person": person_key(person.spelling),
        **{name: getattr(person, name) for name in _STORED_FIELDS},
    }


async def access_in(tx: Transaction, flow_key: str) -> dict[str, Access]:
    """Return all access to a flow, keyed by spelling, soonest end first."""
    rows = await tx.execute(_ACCESS_IN_FLOW, {"its_flow": flow_key})
    return {row.spelling: Access(*row) for row in rows}


async def access_and_lists(
    tx: Transaction, flow_key: str
) -> tuple[datetime, dict[str, Access], list[FlowList], ListChangePlan | None]:
    """Return the time, all access to a flow, its lists of the last minute, and any plan in doubt.

    The transaction is read-only, and ends with this.
    """
    access = await access_in(tx, flow_key)
    at = await tx.now()
    await tx.end_with_next()
    return at, access, *await recent_lists(tx, flow_key, at - CONFIRMED)


async def access_for(tx: Transaction, flow_key: str, spellings: Iterable[str]) -> dict[str, Access]:
    """Return the access that these people have to a flow, keyed by its spelling."""
    rows = await tx.execute(_ACCESS_OF_THEM, _of_people(flow_key, spellings))
    return {row.spelling: Access(*row) for row in rows}


def _of_people(flow_key: str, spellings: Iterable[str]) -> dict[str, Any]:
    return {"its_flow": flow_key, "its_people": [*{*map(person_key, spellings)}]}


async def access_by(tx: Transaction, slack_user_id: str) -> list[tuple[Flow, Access]]:
    """Return the access that a person requested, soonest end first. Endless access comes last."""
    query = (
        _ACCESS.add_columns(REQUEST.flow_sid, REQUEST.flow_alias)
        .join(requests, REQUEST.id == PERSON.request_id)
        .where(REQUEST.requester_id == slack_user_id)
    )
    return [(Flow(*row[4:]), Access(*row[:4])) for row in await tx.execute(query)]


async def flows_with_access(tx: Transaction) -> list[str]:
    """Return the SIDs of all flows that somebody has access to."""
    flows = select(PERSON.flow_key).where(HAS_ACCESS).distinct().subquery()
    newest = _newest(flows.c.flow_key).with_only_columns(REQUEST.flow_sid).scalar_subquery()
    return [*await tx.scalars(select(newest).select_from(flows))]


_IS_NEEDED = or_(LIST.id >= LAST_BEFORE, LIST.at > bindparam("since"), LIST.id >= POST.list_id)
_RECENT = (
    select(
        flow_lists,
        POST.id.label("post_id"),
        POST.sent_at,
        POST.list_id,
        POST.content,
    )
    .select_from(flow_lists.outerjoin(flow_posts, POST.flow_key == LIST.flow_key))
    .where(OF_FLOW, _IS_NEEDED)
    .order_by(LIST.id)
)


async def recent_lists(
    tx: Transaction, flow_key: str, since: datetime
) -> tuple[list[FlowList], ListChangePlan | None]:
    """Return a flow's lists after this time, oldest first, and the plan in doubt, if there's one.

    The list before this time, and those since the POST, are included.
    """
    rows = (await tx.execute(_RECENT, {"its_flow": flow_key, "since": since})).all()
    lists = [list_of(row) for row in rows]
    if not rows or rows[0].post_id is None:
        return lists, None
    row, before = rows[0], next(one for one in lists if one.id == rows[0].list_id)
    plan = {**row.content, "id": row.post_id, "at": row.sent_at, "before": before}
    return lists, _PLAN.validate_python(plan)


async def post_of(tx: Transaction, flow_key: str) -> ListChangePlan | None:
    """Return the flow's plan whose POST has an unknown outcome, or None if there's none."""
    return (await recent_lists(tx, flow_key, await tx.now()))[1]


_FORGET_POST = delete(flow_posts).where(POST.flow_key == bindparam("its_flow"))


async def replace_post(
    tx: Transaction, flow_key: str, before: ListChangePlan | None, plan: ListChangePlan | None
) -> None:
    """Store a plan until the outcome of its POST is known, in place of the one before, if any."""
    if before is not None:
        await tx.write(_FORGET_POST, {"its_flow": flow_key})
    if plan is not None:
        values = {
            "id": plan.id,
            "flow_key": flow_key,
            "sent_at": plan.at,
            "list_id": plan.before.id,
            "content": _PLAN.dump_python(plan, mode="json", exclude={"id", "at", "before"}),
        }
        await tx.write(flow_posts.insert(), values)


_NEEDED = select(func.min(REQUEST.list_id)).where(
    REQUEST.flow_key == bindparam("its_flow"),
    _IS_OPEN | ((REQUEST.state == State.FAILED) & (REQUEST.expires_at > bindparam("now"))),
)
_FORGET_LISTS = delete(flow_lists).where(
    OF_FLOW,
    LIST.id < LAST_BEFORE,
    LIST.id < func.coalesce(_NEEDED.scalar_subquery(), LIST.id + 1),
)


async def forget_lists(tx: Transaction, flow_key: str, since: datetime) -> None:
    """Delete a flow's lists that are older than this time and than its open requests.

    The flow must have no POST in doubt, which also needs a list.
    """
    values = {"its_flow": flow_key, "since": since, "now": await tx.now()}
    await tx.write(_FORGET_LISTS, values)
