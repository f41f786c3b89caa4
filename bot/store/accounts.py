"""An organization as the ledger of calls has it: its counts, its day, its plan, its blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.blocks import Block, BlockCode, Blocks
from bot.model.days import DAY_SECONDS, DayLedger, DayUse, ToldDay, day_use
from bot.model.organization import OrganizationKey
from bot.model.plans import Limits, Plan, limits_of
from bot.model.quota import InUse, Terms
from bot.store.engine import EpochSeconds, Transaction
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations


@dataclass(frozen=True, slots=True)
class Account:
    """An organization as the ledger has it at one moment; `id` names it in other tables.

    `made` is the number of its newest call, `made_before` that of the newest one before its day.
    """

    id: int
    key: OrganizationKey
    now: float
    made: int
    made_before: int
    in_use: InUse
    plan: Plan
    lowered_day: int | None
    told: ToldDay | None
    blocks: Blocks
    muted_until: float

    @property
    def limits(self) -> Limits:
        """The limits of the plan in force."""
        return limits_of(self.plan)

    @property
    def made_in_day(self) -> int:
        """How many of the day's calls are the bot's own."""
        return self.made - self.made_before

    @property
    def day(self) -> DayUse:
        """The day in force, and what of it is used."""
        ledger = DayLedger(self.made, self.made_before, self.told, self.lowered_day)
        return day_use(ledger, self.limits.day, self.now)


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
    its = {"data_center": key.data_center, "organization_id": key.organization_id}
    row = (await tx.connection.execute(_one(tx.clock), {**_now(tx, terms), **its})).first()
    return None if row is None else _account(row, terms)


async def load_all(tx: Transaction, terms: Terms) -> list[Account]:
    """Every organization that was ever called."""
    rows = await tx.connection.execute(_accounts(tx.clock), _now(tx, terms))
    return [_account(row, terms) for row in rows]


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


# Statements are made once: to make these takes longer than to execute them.
@cache
def _one(clock: ColumnElement[float]) -> Select[Any]:
    return _accounts(clock).where(
        organizations.c.data_center == bindparam("data_center"),
        organizations.c.organization_id == bindparam("organization_id"),
    )


@cache
def _accounts(clock: ColumnElement[float]) -> Select[Any]:
    """Each organization with its counts, from indexes alone; its day as `DayLedger` says."""
    reset = organizations.c.told_resets_at
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
    return select(
        organizations,
        clock.label("now"),
        newest.scalar_subquery().label("newest"),
        before.scalar_subquery().label("newest_before"),
        minute.scalar_subquery().label("minute"),
        concurrent.scalar_subquery().label("concurrent"),
    )


def _account(row: Row[Any], terms: Terms) -> Account:
    key = OrganizationKey(row.data_center, row.organization_id)
    return Account(
        id=row.id,
        key=key,
        now=row.now,
        # Old calls are gone, but not their numbers.
        made=row.summed if row.newest is None else row.newest,
        made_before=row.summed if row.newest_before is None else row.newest_before,
        in_use=InUse(row.minute, row.concurrent),
        plan=Plan(row.plan) if row.plan else terms.plan_of(key),
        lowered_day=row.lowered_day,
        told=_told(row),
        blocks=blocks_of(row),
        muted_until=row.muted_until,
    )


def blocks_of(row: Row[Any]) -> Blocks:
    """The blocks in a row of `quota_organizations`."""
    return Blocks(tuple(_block(one) for one in row.blocks), row.probing_until)


def _told(row: Row[Any]) -> ToldDay | None:
    if row.told_number is None:
        return None
    return ToldDay(
        row.told_limit,
        row.told_remaining,
        row.told_resets_at,
        row.told_number,
        row.told_unsure,
    )


def _block(stored: Mapping[str, Any]) -> Block:
    return Block(**{**stored, "code": BlockCode(stored["code"])})


def _is(key: OrganizationKey) -> Any:  # noqa: ANN401 - a condition
    return (organizations.c.data_center == key.data_center) & (
        organizations.c.organization_id == key.organization_id
    )


async def _add(tx: Transaction, key: OrganizationKey) -> None:
    insert = postgresql.insert(organizations) if tx.is_postgres else sqlite.insert(organizations)
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
