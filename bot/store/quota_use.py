"""What was used of each limit: by everybody now, by person, by kind and by hour."""

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
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.organization import OrganizationKey
from bot.model.quota import Terms
from bot.model.standing import Standing
from bot.model.use import HOUR_SECONDS, HourOfCalls
from bot.model.watching import Watched
from bot.store.accounts import Account, load_all
from bot.store.engine import EpochSeconds, Transaction
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_hours as hours
from bot.store.tables import quota_organizations as organizations

# Single calls are kept until the hour that they are summed in is older than this.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
_HOUR_MICROSECONDS = HOUR_SECONDS * 1_000_000


def standing(account: Account) -> Standing:
    """How an organization stands."""
    return Standing(
        key=account.key,
        plan=account.plan,
        limits=account.limits,
        in_use=account.in_use,
        day=account.day,
        blocks=account.blocks,
    )


async def standings(tx: Transaction, terms: Terms) -> list[Standing]:
    """How every organization that was ever called stands."""
    return [standing(account) for account in await load_all(tx, terms)]


async def watched(tx: Transaction, terms: Terms) -> dict[OrganizationKey, Watched]:
    """When the watcher's last turn for each organization was, and the day's limit in force."""
    query = select(organizations.c.id, organizations.c.watched_at)
    turns = {row.id: row.watched_at for row in await tx.connection.execute(query)}
    accounts = await load_all(tx, terms)
    return {one.key: Watched(one.key, one.day.limit, turns[one.id]) for one in accounts}


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
        .where(organizations.c.id == organization)
        .values(summed=func.coalesce(newest, organizations.c.summed))
    )
    await tx.connection.execute(delete(calls).where(old))


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove the sums of hours before a time; return how many."""
    old = delete(hours).where(hours.c.hour_at < before.timestamp())
    return (await tx.connection.execute(old)).rowcount


async def _oldest_kept(tx: Transaction) -> float:
    """The first full hour that is not older than 26 hours."""
    whole_hours = ((await tx.now()).timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS
    return whole_hours * HOUR_SECONDS
