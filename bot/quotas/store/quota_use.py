"""The use of each limit: currently, by person, by kind, and by hour."""

from collections import Counter

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    func,
    literal,
    select,
    type_coerce,
)

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import day_began_at
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.use import HOUR_SECONDS, HourOfCalls, Standing
from bot.quotas.store.accounts import UNSENT, day_limit_of, named
from bot.services.calls import caller_of, client_named
from bot.store.engine import Transaction
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

_HOUR_MICROSECONDS = HOUR_SECONDS * 1_000_000
_SENT = calls.c.slot_free_at != literal(UNSENT, EpochSeconds)


async def last_checks(tx: Transaction, terms: Terms) -> dict[OrganizationKey, tuple[int, float]]:
    """Return each organization's current daily limit, and the time of the watcher's last check."""
    now = (await tx.now()).timestamp()
    checks: dict[OrganizationKey, tuple[int, float]] = {}
    for row in await tx.connection.execute(select(organizations)):
        key = OrganizationKey(row.data_center, row.organization_id)
        checks[key] = (day_limit_of(row, terms.plan_of(key), now), row.watched_at)
    return checks


async def hours_since(tx: Transaction, account: Standing, since: float) -> list[HourOfCalls]:
    """Return the calls since a time within the last 26 hours, by hour, kind, and person."""
    whole = literal(_HOUR_MICROSECONDS, BigInteger)
    microseconds = type_coerce(calls.c.reserved_at, BigInteger) // whole * whole
    hour = type_coerce(microseconds, EpochSeconds).label("hour_at")
    query = (
        select(hour, calls.c.kind, calls.c.slack_user_id, func.count().label("calls"))
        .where(calls.c.organization == account.id, calls.c.reserved_at >= since, _SENT)
        .group_by(hour, calls.c.kind, calls.c.slack_user_id)
        .order_by(hour)
    )
    rows = await tx.connection.execute(query)
    return [HourOfCalls(at, kind, caller or None, count) for at, kind, caller, count in rows]


async def count_since(tx: Transaction, account: Standing, since: float, up_to: int) -> int:
    """Count the calls reserved since a time, up to the call numbered `up_to`."""
    query = (
        select(func.count())
        .select_from(calls)
        .where(
            calls.c.organization == account.id,
            calls.c.reserved_at > since,
            calls.c.number <= up_to,
            _SENT,
        )
    )
    return (await tx.connection.execute(query)).scalar_one()


async def own_day(tx: Transaction, account: Standing, up_to: int, at: float) -> int:
    """Count the bot's calls, up to number `up_to`, in the day that was current at a time."""
    return await count_since(tx, account, day_began_at(account.reported, at), up_to)


async def use_by_client(tx: Transaction, account: Standing, at: float) -> dict[str, list[int]]:
    """Return each client's calls in the minute and the day at a given time, by name; most first."""
    began_at = day_began_at(account.reported, at)
    then = (calls.c.organization == account.id) & (calls.c.reserved_at <= at)
    minute = await _count_by_client(tx, then & (calls.c.slot_free_at > at))
    day = await _count_by_client(tx, then & _SENT & (calls.c.reserved_at > began_at))
    names = sorted({*minute, *day}, key=lambda name: (-minute[name], -day[name], name))
    return {name: [minute[name], day[name]] for name in names}


async def minute_by_client(tx: Transaction, key: OrganizationKey) -> Counter[str]:
    """Return how many of an organization's minute slots each client holds now."""
    organization = select(organizations.c.id).where(named(key)).scalar_subquery()
    held = calls.c.slot_free_at > (await tx.now()).timestamp()
    return await _count_by_client(tx, (calls.c.organization == organization) & held)


async def _count_by_client(tx: Transaction, which: ColumnElement[bool]) -> Counter[str]:
    caller = calls.c.slack_user_id
    query = (
        select(caller, func.count()).where(which, caller.startswith(caller_of(""))).group_by(caller)
    )
    rows = await tx.connection.execute(query)
    return Counter({client_named(caller) or "": count for caller, count in rows})


async def count_of_clients(tx: Transaction) -> int:
    """Count the minute slots that clients hold, across all organizations."""
    held = calls.c.slot_free_at > (await tx.now()).timestamp()
    return (await _count_by_client(tx, held)).total()
