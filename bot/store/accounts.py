"""An organization as the ledger of calls has it: its counts, its day, its plan, its blocks."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    select,
    update,
)

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import Block, BlockCode, Blocks
from bot.model.quotas.concurrency import LoweredConcurrency
from bot.model.quotas.days import (
    DAY_SECONDS,
    DayLedger,
    DaySource,
    DayUse,
    ReportedDay,
    day_began_at,
    day_use,
)
from bot.model.quotas.plans import Limits, Plan, limits_of
from bot.model.quotas.quota import HeldCall, InUse, Terms
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

# To make so many accounts takes less than ten milliseconds, in which nobody is answered.
PORTION = 64


@dataclass(frozen=True, slots=True)
class Account:
    """An organization as the ledger has it at one moment; `id` names it in other tables.

    `made` is the number of its newest call, `made_before` that of the newest one before its day;
    `lowered_concurrent` is there while fewer calls at once are made than the plan allows.
    """

    id: int
    key: OrganizationKey
    now: float
    made: int
    made_before: int
    in_use: InUse
    plan: Plan
    lowered_day: int | None
    lowered_concurrent: LoweredConcurrency | None
    reported: ReportedDay | None
    blocks: Blocks
    muted_until: float

    @property
    def limits(self) -> Limits:
        """The limits of the plan, with as many calls at once as the service takes."""
        limits, lowered = limits_of(self.plan), self.lowered_concurrent
        return limits if lowered is None else replace(limits, concurrent=lowered.limit)

    @property
    def is_lowered(self) -> bool:
        """Whether a 429 has lowered a limit below the plan's."""
        is_day_lowered = self.day.source is DaySource.MESSAGE
        return is_day_lowered or self.lowered_concurrent is not None

    @property
    def day(self) -> DayUse:
        """The day in force, and what of it is used."""
        ledger = DayLedger(self.made, self.made_before, self.reported, self.lowered_day)
        return day_use(ledger, self.limits.day, self.now)

    @property
    def day_began_at(self) -> float:
        """When the day in force began."""
        return day_began_at(self.reported, self.now)


async def load_or_add(tx: Transaction, key: OrganizationKey, terms: Terms) -> Account:
    """The organization as it is now, with a row of its own from now on."""
    account = await load(tx, key, terms)
    if account is None:
        await _add(tx, key)
        account = await load(tx, key, terms)
    assert account is not None  # noqa: S101 - added in this transaction, or by who was first
    return account


async def load(tx: Transaction, key: OrganizationKey, terms: Terms) -> Account | None:
    """The organization as it is now; None when it was never called."""
    row = await load_row(tx, key, terms, one(tx.clock))
    return None if row is None else account_of(row, terms)


async def load_row(
    tx: Transaction, key: OrganizationKey, terms: Terms, query: Select[Any], **parameters: object
) -> Row[Any] | None:
    """The row of `one`, perhaps with more columns, for `account_of`."""
    its = {"data_center": key.data_center, "organization_id": key.organization_id}
    values = {**_now(tx, terms), **its, **parameters}
    row: Row[Any] | None = (await tx.connection.execute(query, values)).first()
    return row


async def load_all(tx: Transaction, terms: Terms) -> AsyncIterator[list[Account]]:
    """Every organization that there is something to tell of, in portions.

    Not of one without a plan of its own, a block, a reported day, and calls of the last 25 hours.
    """
    after = 0
    while True:
        its = {**_now(tx, terms), "after": after}
        rows = (await tx.connection.execute(_portion(tx.clock), its)).all()
        yield [account_of(row, terms) for row in rows]
        if len(rows) < PORTION:
            return
        after = rows[-1].id


def _now(tx: Transaction, terms: Terms) -> dict[str, float]:
    return {**tx.clock_parameters, "hold_seconds": terms.hold_seconds}


async def load_locked(tx: Transaction, key: OrganizationKey, terms: Terms) -> Account:
    """The organization as it is now, and nobody else changes its row before this transaction ends.

    Two statements: under PostgreSQL's READ COMMITTED what one reads of other rows is from before
    the lock that it waits for.
    """
    await lock(tx, key)
    return await load_or_add(tx, key, terms)


async def lock(tx: Transaction, key: OrganizationKey) -> int:
    """Lock the organization's row until the transaction ends; return its id."""
    same = {"summed": organizations.c.summed}
    statement = update(organizations).where(_is(key)).values(same).returning(organizations.c.id)
    found = (await tx.connection.execute(statement)).scalar()
    if found is None:
        await _add(tx, key)
        found = (await tx.connection.execute(statement)).scalar_one()
    return int(found)


async def calls_held(tx: Transaction, account: Account) -> list[tuple[HeldCall, str | None]]:
    """The calls that hold a slot of the organization now, each with its caller, if it has one."""
    its = {"its_organization": account.id, "its_now": account.now}
    rows = await tx.connection.execute(_held(), its)
    return [(HeldCall(row.slot_free_at, row.permit_until), row.slack_user_id) for row in rows]


# Made once: to make a statement takes longer than to execute it.
@cache
def _held() -> Select[Any]:
    return select(calls.c.slot_free_at, calls.c.permit_until, calls.c.slack_user_id).where(
        calls.c.organization == bindparam("its_organization"),
        calls.c.slot_free_at > bindparam("its_now"),
    )


@cache
def one(clock: ColumnElement[float]) -> Select[Any]:
    """The query for the organization of a key, with its counts."""
    return _accounts(clock).where(
        organizations.c.data_center == bindparam("data_center"),
        organizations.c.organization_id == bindparam("organization_id"),
    )


@cache
def _portion(clock: ColumnElement[float]) -> Select[Any]:
    since = clock - DAY_SECONDS - bindparam("hold_seconds", type_=EpochSeconds)
    recent = (
        select(literal(1))
        .where(calls.c.organization == organizations.c.id, calls.c.reserved_at > since)
        .correlate(organizations)
        .exists()
    )
    tells = (
        (cast(organizations.c.blocks, Text) != "[]")
        | organizations.c.plan.is_not(None)
        | organizations.c.lowered_day.is_not(None)
        | organizations.c.reported_number.is_not(None)
        | recent
    )
    portion = _accounts(clock).where(organizations.c.id > bindparam("after"), tells)
    return portion.order_by(organizations.c.id).limit(PORTION)


@cache
def _accounts(clock: ColumnElement[float]) -> Select[Any]:
    """Each organization with its counts, from indexes alone; its day as `DayLedger` says."""
    reset = organizations.c.reported_resets_at
    is_in_the_day = reset.is_not(None) & (reset <= clock) & (reset > clock - DAY_SECONDS)
    begins_at = case((is_in_the_day, reset), else_=clock - DAY_SECONDS)
    is_before = calls.c.reserved_at <= begins_at - bindparam("hold_seconds", type_=EpochSeconds)
    its = calls.c.organization == organizations.c.id
    number = select(calls.c.number).where(its).limit(1).correlate(organizations)
    newest = number.order_by(calls.c.number.desc())
    in_order = (calls.c.reserved_at.desc(), calls.c.number.desc())
    before = number.where(is_before).order_by(*in_order)
    # Who holds a permit holds a slot too.
    minute = select(func.count()).where(its, calls.c.slot_free_at > clock).correlate(organizations)
    concurrent = minute.where(calls.c.permit_until > clock)
    # A call that was never settled ends when its hold does.
    ended = (its, calls.c.slot_free_at > clock, calls.c.permit_until <= clock)
    held = calls.c.permit_until - calls.c.reserved_at
    hold, rounding = bindparam("hold_seconds", type_=EpochSeconds), literal(0.001, EpochSeconds)
    is_given_up = held.between(hold - rounding, hold + rounding)
    given_up = select(func.max(calls.c.reserved_at)).where(*ended, is_given_up)
    answered = select(func.max(calls.c.permit_until)).where(*ended, ~is_given_up)
    sent_at, answered_at = (
        newest_of.correlate(organizations).scalar_subquery() for newest_of in (given_up, answered)
    )
    return select(
        organizations,
        clock.label("now"),
        newest.scalar_subquery().label("newest"),
        before.scalar_subquery().label("newest_before"),
        minute.scalar_subquery().label("minute"),
        concurrent.scalar_subquery().label("concurrent"),
        (sent_at > func.coalesce(answered_at, 0)).label("is_stalled"),
    )


def account_of(row: Row[Any], terms: Terms) -> Account:
    """What a row of `one` says."""
    key = OrganizationKey(row.data_center, row.organization_id)
    plan = Plan(row.plan) if row.plan else terms.plan_of(key)
    return Account(
        id=row.id,
        key=key,
        now=row.now,
        # Old calls are gone, but not their numbers.
        made=row.summed if row.newest is None else row.newest,
        made_before=row.summed if row.newest_before is None else row.newest_before,
        in_use=_in_use(row.minute, row.concurrent, bool(row.is_stalled)),
        plan=plan,
        lowered_day=row.lowered_day,
        lowered_concurrent=_lowered_concurrent(row, plan),
        reported=_reported(row),
        blocks=blocks_of(row),
        muted_until=row.muted_until,
    )


def day_limit_of(row: Row[Any], usual: Plan, now: float) -> int:
    """The day's limit in force, of a row of `quota_organizations`; without its counts."""
    plan = Plan(row.plan) if row.plan else usual
    return day_use(DayLedger(0, 0, _reported(row), row.lowered_day), limits_of(plan).day, now).limit


# Ten thousand organizations have few different ones of these, and what is shared costs neither
# memory nor the time of the garbage collector.
NO_BLOCKS = Blocks()
_in_use = lru_cache(10_000)(InUse)


def blocks_of(row: Row[Any]) -> Blocks:
    """The blocks in a row of `quota_organizations`."""
    if not row.blocks and not row.probing_until:
        return NO_BLOCKS
    return Blocks(tuple(_block(one) for one in row.blocks), row.probing_until)


def _lowered_concurrent(row: Row[Any], plan: Plan) -> LoweredConcurrency | None:
    if row.lowered_concurrent is None:
        return None
    lowered = LoweredConcurrency(row.lowered_concurrent, row.lowered_until)
    return lowered if lowered.binds(limits_of(plan), row.now) else None


def _reported(row: Row[Any]) -> ReportedDay | None:
    if row.reported_number is None:
        return None
    return ReportedDay(
        row.reported_limit,
        row.reported_remaining,
        row.reported_resets_at,
        row.reported_number,
        row.reported_unsure,
    )


def _block(stored: Mapping[str, Any]) -> Block:
    return Block(**{**stored, "code": BlockCode(stored["code"])})


def _is(key: OrganizationKey) -> Any:  # noqa: ANN401 - a condition
    return (organizations.c.data_center == key.data_center) & (
        organizations.c.organization_id == key.organization_id
    )


async def _add(tx: Transaction, key: OrganizationKey) -> None:
    insert = insert_into(organizations, is_postgres=tx.is_postgres)
    statement = insert.values(
        data_center=key.data_center,
        organization_id=key.organization_id,
        summed=0,
        blocks=[],
        probing_until=0.0,
        muted_until=0.0,
        watched_at=0.0,
    )
    await tx.connection.execute(statement.on_conflict_do_nothing())
