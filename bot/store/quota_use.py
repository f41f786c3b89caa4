"""What was used of each limit: by everybody now, by person, by kind and by hour."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Select,
    case,
    delete,
    func,
    literal,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.days import DAY_SECONDS, DayLedger, day_use
from bot.model.organization import OrganizationKey
from bot.model.quota import HeldCall, Holdings, Terms
from bot.model.standing import Standing
from bot.model.use import HOUR_SECONDS, HourOfCalls
from bot.model.watching import Watched
from bot.store.engine import EpochSeconds, Transaction
from bot.store.quotas import Account, account_of, in_use
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_hours as hours
from bot.store.tables import quota_organizations as organizations

# Single calls are kept until the hour that they are summed in is older than this.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
_HOUR_MICROSECONDS = HOUR_SECONDS * 1_000_000


async def standing(tx: Transaction, account: Account, terms: Terms) -> Standing:
    """How an organization stands; its row may be locked or not."""
    default_plan = terms.plan_of(account.key)
    held, day = await in_use(tx, account, default_plan, terms.hold_seconds)
    plan = account.plan or default_plan
    return Standing(account.key, plan, account.limits(plan), held, day, account.blocks)


async def find(tx: Transaction, key: OrganizationKey) -> Account | None:
    """The row of an organization that was ever called, not locked."""
    query = select(organizations).where(
        organizations.c.data_center == key.data_center,
        organizations.c.organization_id == key.organization_id,
    )
    row = (await tx.connection.execute(query)).first()
    return None if row is None else account_of(row, (await tx.now()).timestamp())


async def standings(tx: Transaction, terms: Terms) -> list[Standing]:
    """How every organization that was ever called stands, in two queries for all of them."""
    now = (await tx.now()).timestamp()
    held = await _held(tx, now)
    rows = await tx.connection.execute(_with_made_before(now, terms.hold_seconds))
    return [_standing(row, now, terms, held[row.id]) for row in rows]


async def _held(tx: Transaction, now: float) -> dict[int, list[HeldCall]]:
    query = (
        select(calls.c.organization, calls.c.slot_free_at, calls.c.permit_until)
        .select_from(organizations.join(calls, calls.c.organization == organizations.c.id))
        .where(calls.c.slot_free_at > now)
    )
    held: dict[int, list[HeldCall]] = defaultdict(list)
    for row in await tx.connection.execute(query):
        held[row.organization].append(HeldCall(row.slot_free_at, row.permit_until))
    return held


def _with_made_before(now: float, hold_seconds: float) -> Select[Any]:
    """Each organization's row, and the newest call before its day; as `day_begins_at` says."""
    reset = organizations.c.told_resets_at
    is_in_the_day = reset.is_not(None) & (reset <= now) & (reset > now - DAY_SECONDS)
    begins_at = case((is_in_the_day, reset), else_=literal(now - DAY_SECONDS, EpochSeconds))
    made_before = (
        select(calls.c.number)
        .where(calls.c.organization == organizations.c.id)
        .where(calls.c.reserved_at <= begins_at - literal(hold_seconds, EpochSeconds))
        .order_by(calls.c.reserved_at.desc())
        .limit(1)
        .correlate(organizations)
        .scalar_subquery()
    )
    return select(organizations, made_before.label("made_before"))


def _standing(row: Row[Any], now: float, terms: Terms, held: list[HeldCall]) -> Standing:
    account = account_of(row, now)
    plan = account.plan or terms.plan_of(account.key)
    limits = account.limits(plan)
    before = account.summed if row.made_before is None else row.made_before
    ledger = DayLedger(account.made, before, account.told, account.lowered_day)
    day = day_use(ledger, limits.day, now)
    return Standing(account.key, plan, limits, Holdings.of(held, now), day, account.blocks)


async def watched(tx: Transaction, terms: Terms) -> dict[OrganizationKey, Watched]:
    """When the watcher's last turn for each organization was, and the day's limit in force."""
    now = (await tx.now()).timestamp()
    rows = (await tx.connection.execute(_with_made_before(now, terms.hold_seconds))).all()
    found = [(_standing(row, now, terms, []), row.watched_at) for row in rows]
    return {one.key: Watched(one.key, one.day.limit, at) for one, at in found}


async def hours_since(tx: Transaction, account: Account, since: float) -> list[HourOfCalls]:
    """The calls since a full hour within the last 26 hours, by hour, kind and person."""
    hour = _hour_of(calls.c.reserved_at)
    query = (
        select(hour, calls.c.kind, calls.c.slack_user_id, func.count().label("calls"))
        .where(calls.c.organization == account.id, calls.c.reserved_at >= since)
        .group_by(hour, calls.c.kind, calls.c.slack_user_id)
        .order_by(hour)
    )
    return [_hour(row) for row in await tx.connection.execute(query)]


def _hour(row: Row[Any]) -> HourOfCalls:
    return HourOfCalls(row.hour_at, row.kind, row.slack_user_id or None, row.calls)


def _hour_of(column: ColumnElement[float]) -> ColumnElement[float]:
    whole = type_coerce(column, BigInteger) // literal(_HOUR_MICROSECONDS, BigInteger)
    return type_coerce(whole * literal(_HOUR_MICROSECONDS, BigInteger), EpochSeconds).label(
        "hour_at"
    )


async def count_since(tx: Transaction, account: Account, since: float, up_to: int) -> int:
    """How many calls up to the one of that number were reserved since a time."""
    query = (
        select(func.count())
        .select_from(calls)
        .where(
            calls.c.organization == account.id,
            calls.c.reserved_at > since,
            calls.c.number <= up_to,
        )
    )
    return (await tx.connection.execute(query)).scalar_one()


async def keys_to_tidy(tx: Transaction) -> list[OrganizationKey]:
    """The organizations with calls that are old enough to stand in their hour's sum only."""
    old = (
        select(literal(1))
        .where(calls.c.organization == organizations.c.id)
        .where(calls.c.reserved_at < _oldest_kept((await tx.now()).timestamp()))
        .correlate(organizations)
        .exists()
    )
    query = select(organizations.c.data_center, organizations.c.organization_id).where(old)
    return [OrganizationKey(*row) for row in await tx.connection.execute(query)]


async def tidy(tx: Transaction, account: Account) -> None:
    """Sum the old calls of an organization, whose row is locked, into their hours."""
    old = (calls.c.organization == account.id) & (calls.c.reserved_at < _oldest_kept(account.now))
    hour = _hour_of(calls.c.reserved_at)
    key = (calls.c.organization, hour, calls.c.kind, calls.c.slack_user_id)
    sums = select(*key, func.count().label("calls")).where(old).group_by(*key)
    insert = postgresql.insert(hours) if tx.is_postgres else sqlite.insert(hours)
    added = insert.from_select([column.name for column in hours.c], sums)
    await tx.connection.execute(
        added.on_conflict_do_update(
            index_elements=list(hours.primary_key),
            set_={"calls": hours.c.calls + added.excluded.calls},
        )
    )
    newest = select(func.max(calls.c.number)).where(old).scalar_subquery()
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == account.id)
        .values(summed=func.coalesce(newest, organizations.c.summed))
    )
    await tx.connection.execute(delete(calls).where(old))


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove the sums of hours before a time; return how many."""
    old = delete(hours).where(hours.c.hour_at < before.timestamp())
    return (await tx.connection.execute(old)).rowcount


def _oldest_kept(now: float) -> float:
    """The first full hour that is not older than 26 hours."""
    whole_hours = (now - KEEP_CALLS_SECONDS) // HOUR_SECONDS
    return whole_hours * HOUR_SECONDS
