"""What was used of each limit: by everybody now, by person, by kind and by hour."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    delete,
    func,
    literal,
    select,
    type_coerce,
    update,
)

from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.days import day_began_at
from bot.model.quotas.quota import Terms
from bot.model.quotas.standing import Standing
from bot.model.quotas.use import HOUR_SECONDS, HourOfCalls
from bot.model.quotas.watching import Watched
from bot.store.accounts import Account, day_limit_of, load_all
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.pruning import remove_some
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_hours as hours
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

# Single calls are kept until the hour that they are summed in is older than this.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
# To make so many takes less than ten milliseconds, in which nobody is answered.
WATCHED_PORTION = 200
_HOUR_MICROSECONDS = HOUR_SECONDS * 1_000_000


def standing(account: Account) -> Standing:
    """How an organization stands."""
    lowered = account.lowered_concurrent
    return Standing(
        key=account.key,
        plan=account.plan,
        limits=account.limits,
        lowered_until=None if lowered is None else lowered.until,
        in_use=account.in_use,
        day=account.day,
        blocks=account.blocks,
    )


async def standings(tx: Transaction, terms: Terms) -> AsyncIterator[list[Standing]]:
    """How every organization stands that there is something to tell of, in portions."""
    async for portion in load_all(tx, terms):
        yield [standing(account) for account in portion]


async def watched(tx: Transaction, terms: Terms) -> AsyncIterator[list[Watched]]:
    """When the watcher's last turn for each organization was, and the day's limit in force."""
    now, after = (await tx.now()).timestamp(), 0
    while True:
        query = select(organizations).where(organizations.c.id > after)
        portion = query.order_by(organizations.c.id).limit(WATCHED_PORTION)
        rows = (await tx.connection.execute(portion)).all()
        yield [_watched(row, terms, now) for row in rows]
        if len(rows) < WATCHED_PORTION:
            return
        after = rows[-1].id


def _watched(row: Row[Any], terms: Terms, now: float) -> Watched:
    key = OrganizationKey(row.data_center, row.organization_id)
    return Watched(key, day_limit_of(row, terms.plan_of(key), now), row.watched_at)


async def hours_since(tx: Transaction, account: Account, since: float) -> list[HourOfCalls]:
    """The calls since a time within the last 26 hours, by hour, kind and person."""
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


async def own_day(tx: Transaction, account: Account, up_to: int, seconds_ago: float = 0.0) -> int:
    """The bot's own calls of the day in force so long ago, up to the one of that number."""
    since = day_began_at(account.reported, account.now - seconds_ago)
    return await count_since(tx, account, since, up_to)


async def keys_to_tidy(tx: Transaction) -> list[OrganizationKey]:
    """The organizations with calls that are old enough to stand in their hour's sum only."""
    old = (
        select(literal(1))
        .where(calls.c.organization == organizations.c.id)
        .where(calls.c.reserved_at < await _oldest_kept(tx))
        .correlate(organizations)
        .exists()
    )
    query = select(organizations.c.data_center, organizations.c.organization_id).where(old)
    return [OrganizationKey(*row) for row in await tx.connection.execute(query)]


async def tidy(tx: Transaction, organization: int) -> None:
    """Sum the old calls of an organization, whose row is locked, into their hours."""
    old = (calls.c.organization == organization) & (calls.c.reserved_at < await _oldest_kept(tx))
    hour = _hour_of(calls.c.reserved_at)
    key = (calls.c.organization, hour, calls.c.kind, calls.c.slack_user_id)
    sums = select(*key, func.count().label("calls")).where(old).group_by(*key)
    insert = insert_into(hours, is_postgres=tx.is_postgres)
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
        .where(organizations.c.id == organization)
        .values(summed=func.coalesce(newest, organizations.c.summed))
    )
    await tx.connection.execute(delete(calls).where(old))


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove some sums of hours before a time; return how many."""
    return await remove_some(tx, hours, hours.c.hour_at < before.timestamp())


async def _oldest_kept(tx: Transaction) -> float:
    """The first full hour that is not older than 26 hours."""
    whole_hours = ((await tx.now()).timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS
    return whole_hours * HOUR_SECONDS
