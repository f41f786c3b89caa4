"""Reads each organization's call counts, plan, blocks, and usage by caller from the database."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, astuple, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Select,
    bindparam,
    case,
    func,
    literal,
    select,
    true,
    tuple_,
    type_coerce,
)

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    STALL,
    Limit,
    LimitKind,
    Plan,
    ReportedDay,
    Source,
    day_began_at,
    day_use,
    less_reserve,
)
from bot.quotas.rules.quota import (
    HOLD_SECONDS,
    HOUR_SECONDS,
    Block,
    Blocks,
    HourOfCalls,
    InUse,
    Standing,
    Terms,
)
from bot.quotas.tables import quota_calls as calls
from bot.quotas.tables import quota_organizations as organizations
from bot.services.calls import client_named
from bot.store.engine import Transaction, insert_into
from bot.store.tables import EpochSeconds

BLOCKS = TypeAdapter(tuple[Block, ...])
# The `slot_free_at` of a call that was never sent, which doesn't count against any limit.
UNSENT = 0.0
_SENT = calls.c.slot_free_at != literal(UNSENT, EpochSeconds)
_HOLD = literal(HOLD_SECONDS, EpochSeconds)
# The tolerance for comparing times that were stored in the database.
_ROUNDING = literal(0.001, EpochSeconds)
# A call that was never settled ends when its hold expires.
IS_GIVEN_UP = (calls.c.permit_until - calls.c.reserved_at).between(
    _HOLD - _ROUNDING, _HOLD + _ROUNDING
)


async def load(tx: Transaction, key: OrganizationKey, terms: Terms) -> Standing:
    """Return an organization's standing. The `id` is 0 if the organization isn't stored yet."""
    account = (await load_all(tx, terms, [key])).get(key)
    if account is not None:
        return account
    return replace(Standing.idle(key, terms), now=(await tx.now()).timestamp())


async def load_all(
    tx: Transaction, terms: Terms, keys: Iterable[OrganizationKey] | None = None
) -> dict[OrganizationKey, Standing]:
    """Return the standings of all organizations that are stored, or of those of these keys."""
    parameters: dict[str, object] = {**tx.clock_parameters}
    if keys is not None:
        parameters["keys"] = [astuple(key) for key in keys]
    rows = await tx.execute(_accounts(tx.clock, is_for_all=keys is None), parameters)
    accounts = [_standing(row, terms) for row in rows]
    return {account.key: account for account in accounts}


async def load_locked(tx: Transaction, key: OrganizationKey, terms: Terms) -> Standing:
    """Lock the organization's row until the transaction ends, and return its standing.

    Locking and reading are separate statements, because a statement that waits for a lock sees the
    other rows as they were before the wait.
    """
    await lock(tx, key)
    return await load(tx, key, terms)


async def lock(tx: Transaction, key: OrganizationKey) -> int:
    """Lock the organization's row until the transaction ends, and return the row's ID.

    If there is no row, store one.
    """
    its = asdict(key)
    # Of a row that is there, nothing changes.
    locked = (
        insert_into(organizations)
        .values(its)
        .on_conflict_do_update(index_elements=[*its], set_={"summed": organizations.c.summed})
        .returning(organizations.c.id)
    )
    number: int = await tx.scalar(locked)
    return number


# Cached, because building a statement takes longer than executing it.
@cache
def _accounts(clock: ColumnElement[float], *, is_for_all: bool) -> Select[Any]:
    """Return a query for organizations and their call counts, which are read from indexes."""
    key = tuple_(organizations.c.data_center, organizations.c.organization_id)
    is_wanted = true() if is_for_all else key.in_(bindparam("keys", expanding=True))
    reset = organizations.c.reported_resets_at
    is_in_the_day = reset.is_not(None) & (reset <= clock) & (reset > clock - DAY_SECONDS)
    begins_at = case((is_in_the_day, reset), else_=clock - DAY_SECONDS)
    # A call that was in flight when the clock was corrected has kept its `reserved_at`.
    is_before = (calls.c.reserved_at <= begins_at - _HOLD) & (calls.c.permit_until <= begins_at)
    its = calls.c.organization == organizations.c.id
    number = select(calls.c.number).where(its).limit(1)
    in_order = (calls.c.reserved_at.desc(), calls.c.number.desc())
    unsent = select(func.count()).where(its, ~_SENT)
    minute = select(func.count()).where(its, calls.c.slot_free_at > clock)
    # The service hangs if the last call that ended got no response, although it was sent later.
    has_ended = calls.c.permit_until <= clock
    last = case((IS_GIVEN_UP, calls.c.reserved_at), else_=calls.c.permit_until).desc()
    given_up = select(IS_GIVEN_UP).where(its, calls.c.slot_free_at > clock, has_ended)
    figures = {
        "newest": number.order_by(calls.c.number.desc()),
        "newest_before": number.where(is_before).order_by(*in_order),
        "minute": minute,
        # Every call that holds a permit also holds a slot.
        "concurrent": minute.where(calls.c.permit_until > clock),
        "unsent": unsent.where(~is_before),
        "unsent_since_report": unsent.where(calls.c.number > organizations.c.reported_number),
        "is_stalled": given_up.order_by(last).limit(1),
    }
    columns = [query.scalar_subquery().label(name) for name, query in figures.items()]
    return select(organizations, clock.label("now"), *columns).where(is_wanted)


def _standing(row: Row[Any], terms: Terms) -> Standing:
    key = OrganizationKey(row.data_center, row.organization_id)
    plan = Plan(row.plan) if row.plan else terms.plan_of(key)
    # Old calls are deleted, but their numbers are still needed for counting.
    made = row.summed if row.newest is None else row.newest
    made_before = row.summed if row.newest_before is None else row.newest_before
    sent = made - made_before - row.unsent
    since_report = 0
    reported = None
    if row.reported_number is not None:
        since_report = made - row.reported_number - row.unsent_since_report
        reported = ReportedDay(
            row.reported_limit,
            row.reported_remaining,
            row.reported_resets_at,
            row.reported_number,
            row.reported_unsure,
        )
    limits = {limit.kind: limit for limit in terms.limits_of(key, plan).in_force()}
    used, day = sent, list[Limit]()
    if LimitKind.DAY in limits:
        used, day = day_use(
            limits.pop(LimitKind.DAY), row.now, sent, reported, since_report, row.lowered_day
        )
    in_force = [*limits.values(), *day, *lowered_in(row, row.now).values()]
    if row.is_stalled:
        in_force.append(STALL)
    return Standing(
        key=key,
        plan=plan,
        in_use=InUse(row.minute, row.concurrent, used),
        limits=less_reserve(in_force, *terms.reserve_of(key)),
        blocks=blocks_of(row),
        reported=reported,
        watched_at=row.watched_at,
        id=row.id,
        now=row.now,
        made=made,
    )


# The columns of the temporary limits: the number of calls, and the limit's end.
COLUMNS = {
    LimitKind.CONCURRENT: ("lowered_concurrent", "lowered_until"),
    LimitKind.MINUTE: ("lowered_minute", "lowered_minute_until"),
}


def lowered_in(row: Row[Any], now: float) -> dict[LimitKind, Limit]:
    """Return the temporary limits in a row of `quota_organizations`."""
    limits = {}
    for kind, (number, end) in COLUMNS.items():
        most, until = getattr(row, number), getattr(row, end)
        if most is not None and until > now:
            limits[kind] = Limit(kind, most, Source.REFUSAL, until)
    return limits


def blocks_of(row: Row[Any]) -> Blocks:
    """Return the blocks in a row of `quota_organizations`."""
    return Blocks(BLOCKS.validate_python(row.blocks), row.probing_until)


async def hours_since(tx: Transaction, account: Standing, since: float) -> list[HourOfCalls]:
    """Count the calls since the time `since` (at most 26 hours ago) by hour, kind, and caller."""
    whole = literal(HOUR_SECONDS * 1_000_000, BigInteger)
    microseconds = type_coerce(calls.c.reserved_at, BigInteger) // whole * whole
    hour = type_coerce(microseconds, EpochSeconds).label("hour_at")
    groups = (hour, calls.c.kind, calls.c.slack_user_id)
    query = (
        select(*groups, func.count())
        .where(calls.c.organization == account.id, calls.c.reserved_at >= since, _SENT)
        .group_by(*groups)
    )
    rows = await tx.execute(query)
    return [HourOfCalls(*row) for row in rows]


async def count_since(tx: Transaction, account: Standing, since: float, up_to: int) -> int:
    """Count the calls reserved after the time `since`, up to call number `up_to`."""
    is_counted = (calls.c.reserved_at > since) & (calls.c.number <= up_to) & _SENT
    return await tx.count(calls.c.organization == account.id, is_counted)


async def count_late(tx: Transaction, account: Standing, since: float) -> int:
    """Count the calls since a time that got no response, and may still reach the service."""
    is_late = (calls.c.reserved_at > since) & (calls.c.permit_until <= account.now) & IS_GIVEN_UP
    return await tx.count(calls.c.organization == account.id, is_late)


async def use_by_client(tx: Transaction, account: Standing, at: float) -> dict[str, list[int]]:
    """Return each gateway client's call counts for the minute and day up to `at`, highest first."""
    caller = calls.c.slack_user_id
    is_in_minute = calls.c.slot_free_at > at
    is_in_day = _SENT & (calls.c.reserved_at > day_began_at(account.reported, at))
    minute, day = func.count().filter(is_in_minute), func.count().filter(is_in_day)
    query = (
        select(caller, minute, day)
        .where(calls.c.organization == account.id, calls.c.reserved_at <= at)
        .where(is_in_minute | is_in_day)
        .group_by(caller)
        .order_by(minute.desc(), day.desc(), caller)
    )
    used = {}
    for name, *numbers in await tx.execute(query):
        if client := client_named(name):
            used[client] = numbers
    return used


async def minute_by_client(tx: Transaction, key: OrganizationKey) -> Counter[str]:
    """Count the organization's minute slots that each gateway client is using now."""
    its = {**asdict(key), **tx.clock_parameters}
    rows = await tx.execute(_minute_by_caller(tx.clock), its)
    return Counter({client_named(caller) or "": count for caller, count in rows})


# Cached, as `_accounts`.
@cache
def _minute_by_caller(clock: ColumnElement[float]) -> Select[Any]:
    caller = calls.c.slack_user_id
    return (
        select(caller, func.count())
        .join(organizations, organizations.c.id == calls.c.organization)
        .where(organizations.c.data_center == bindparam("data_center"))
        .where(organizations.c.organization_id == bindparam("organization_id"))
        .where(calls.c.slot_free_at > clock)
        .group_by(caller)
    )
