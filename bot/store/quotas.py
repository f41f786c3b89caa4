"""The ledger of inventory calls: who made how many, which slots are held, what blocks us.

One row an organization, locked by whoever reserves, and one row a call. Calls are numbered, so that
the calls of a day are a difference of two numbers, however many there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.blocks import Block, BlockCode, Blocks
from bot.model.calls import CallCause
from bot.model.days import DayLedger, DayUse, ToldDay, day_begins_at, day_use, leaves_day_at
from bot.model.organization import OrganizationKey
from bot.model.plans import CallClass, Limits, Plan, limits_of
from bot.model.quota import (
    SLOT_SECONDS,
    Blocked,
    Full,
    Granted,
    HeldCall,
    Holdings,
    decide,
)
from bot.store.engine import Transaction
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations


@dataclass(frozen=True, slots=True)
class Account:
    """An organization's row: `id` names it in other tables, `plan` is the one set from Slack."""

    id: int
    key: OrganizationKey
    made: int
    summed: int
    now: float
    plan: Plan | None
    lowered_day: int | None
    told: ToldDay | None
    blocks: Blocks
    muted_until: float

    def limits(self, default: Plan) -> Limits:
        """The limits of the plan in force."""
        return limits_of(self.plan or default)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted call: its number, and what was in use when it was granted."""

    account: Account
    number: int
    granted: Granted


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why a call was not granted, and the database's time when that was decided."""

    reason: Full | Blocked
    now: float


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What is asked of the ledger.

    `default_plan` is in force where none was set from Slack; `hold_seconds` is the call's timeout
    with its grace.
    """

    key: OrganizationKey
    cause: CallCause
    call_class: CallClass
    default_plan: Plan
    timeout_seconds: float
    hold_seconds: float


async def lock(tx: Transaction, key: OrganizationKey, *, made: int = 0) -> Account:
    """Lock the organization's row until the transaction ends, and number so many calls more.

    Under PostgreSQL's READ COMMITTED a subquery here would see the time before the lock was waited
    for; hence what depends on other rows is read by later statements.
    """
    account = await _lock_row(tx, key, made)
    if account is None:
        await _add(tx, key)
        account = await _lock_row(tx, key, made)
    assert account is not None  # noqa: S101 - it was added in this transaction, or just before
    return account


async def _lock_row(tx: Transaction, key: OrganizationKey, made: int) -> Account | None:
    statement = (
        update(organizations)
        .where(_is(key))
        .values(made=organizations.c.made + made)
        .returning(organizations, tx.clock().label("now"))
    )
    row = (await tx.connection.execute(statement)).first()
    return None if row is None else account_of(row, row.now)


def _is(key: OrganizationKey) -> Any:  # noqa: ANN401 - a condition
    return (organizations.c.data_center == key.data_center) & (
        organizations.c.organization_id == key.organization_id
    )


async def _add(tx: Transaction, key: OrganizationKey) -> None:
    insert = postgresql.insert(organizations) if tx.is_postgres else sqlite.insert(organizations)
    statement = insert.values(
        data_center=key.data_center,
        organization_id=key.organization_id,
        made=0,
        summed=0,
        blocks=[],
        probing_until=0.0,
        muted_until=0.0,
        watched_at=0.0,
    )
    await tx.connection.execute(statement.on_conflict_do_nothing())


def account_of(row: Row[Any], now: float) -> Account:
    """The row of an organization as a value."""
    return Account(
        id=row.id,
        key=OrganizationKey(row.data_center, row.organization_id),
        made=row.made,
        summed=row.summed,
        now=now,
        plan=Plan(row.plan) if row.plan else None,
        lowered_day=row.lowered_day,
        told=_told_of(row),
        blocks=Blocks(tuple(_block_of(one) for one in row.blocks), row.probing_until),
        muted_until=row.muted_until,
    )


def _told_of(row: Row[Any]) -> ToldDay | None:
    if row.told_number is None:
        return None
    return ToldDay(
        row.told_limit,
        row.told_remaining,
        row.told_resets_at,
        row.told_number,
        row.told_unsure,
    )


def _block_of(stored: Mapping[str, Any]) -> Block:
    return Block(**{**stored, "code": BlockCode(stored["code"])})


def _stored(block: Block) -> dict[str, Any]:
    return {
        "code": int(block.code),
        "since": block.since,
        "until": block.until,
        "failed_tries": block.failed_tries,
    }


async def reserve(tx: Transaction, request: CallRequest) -> Reservation | NotNow:
    """Reserve one call, minute, day and concurrency together, or say why not.

    The caller rolls the transaction back when it is not a `Reservation`.
    """
    account = await lock(tx, request.key, made=1)
    before = replace(account, made=account.made - 1)
    held, day = await in_use(tx, before, request.default_plan, request.hold_seconds)
    limits = account.limits(request.default_plan)
    decision = decide(
        request.call_class, account.now, limits=limits, held=held, day=day, blocks=account.blocks
    )
    if isinstance(decision, Full):
        return NotNow(await _with_time(tx, before, decision, request), account.now)
    if isinstance(decision, Blocked):
        return NotNow(decision, account.now)
    await _write_call(tx, account, request)
    if request.call_class is CallClass.PROBE:
        hold = HeldCall.unanswered(account.now, request.timeout_seconds)
        await save_blocks(tx, account, account.blocks.probing(hold.permit_until))
    return Reservation(account, account.made, decision)


async def in_use(
    tx: Transaction, account: Account, default_plan: Plan, hold_seconds: float
) -> tuple[Holdings, DayUse]:
    """What is held of the minute and of the lines now, and what of the day is used."""
    rows = (await tx.connection.execute(_in_use_query(account, hold_seconds))).all()
    held = [HeldCall(row.slot_free_at, row.permit_until) for row in rows if row.slot_free_at]
    made_before = _made_before(rows[0], account)
    ledger = DayLedger(account.made, made_before, account.told, account.lowered_day)
    day = day_use(ledger, account.limits(default_plan).day, account.now)
    return Holdings.of(held, account.now), day


def _made_before(row: Row[Any], account: Account) -> int:
    return account.summed if row.made_before is None else int(row.made_before)


def _in_use_query(account: Account, hold_seconds: float) -> Any:  # noqa: ANN401 - a select
    """The held calls, and on each row the newest call before the day; one row at least."""
    told_resets_at = account.told.resets_at if account.told else None
    begins_at = day_begins_at(account.now, hold_seconds, told_resets_at)
    made_before = (
        select(calls.c.number)
        .where(calls.c.organization == account.id, calls.c.reserved_at <= begins_at)
        .order_by(calls.c.reserved_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    one = select(literal(1).label("one")).subquery("one")
    held = (calls.c.organization == account.id) & (calls.c.slot_free_at > account.now)
    return select(
        made_before.label("made_before"), calls.c.slot_free_at, calls.c.permit_until
    ).select_from(one.outerjoin(calls, held))


async def _with_time(tx: Transaction, account: Account, full: Full, request: CallRequest) -> Full:
    """Say when a day of any 25 hours has room again: when its oldest calls have left it."""
    if full.free_at is not None:
        return full
    first = account.made - full.used
    query = select(calls.c.reserved_at).where(
        calls.c.organization == account.id, calls.c.number == first + full.returning
    )
    reserved_at = (await tx.connection.execute(query)).scalar()
    if reserved_at is None:
        return replace(full, free_at=account.now)
    return replace(full, free_at=leaves_day_at(reserved_at, request.hold_seconds))


async def _write_call(tx: Transaction, account: Account, request: CallRequest) -> None:
    hold = HeldCall.unanswered(account.now, request.timeout_seconds)
    await tx.connection.execute(
        calls.insert().values(
            organization=account.id,
            number=account.made,
            reserved_at=account.now,
            slot_free_at=hold.slot_free_at,
            permit_until=hold.permit_until,
            kind=request.cause.kind,
            slack_user_id=request.cause.slack_user_id or "",
        )
    )


async def settle(tx: Transaction, reservation: Reservation, seconds_since_headers: float) -> None:
    """Note that a call's headers came so long ago, and that it has ended now."""
    clock = tx.clock()
    await tx.connection.execute(
        update(calls)
        .where(calls.c.organization == reservation.account.id, calls.c.number == reservation.number)
        .values(slot_free_at=clock + (SLOT_SECONDS - seconds_since_headers), permit_until=clock)
    )


async def note_told(tx: Transaction, reservation: Reservation, told: ToldDay) -> None:
    """Note what the service told with a call's answer, unless a later call's answer told more."""
    older = (organizations.c.told_number.is_(None)) | (organizations.c.told_number < told.number)
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == reservation.account.id, older)
        .values(
            told_number=told.number,
            told_limit=told.limit,
            told_remaining=told.remaining,
            told_unsure=told.unsure,
            told_resets_at=told.resets_at,
            lowered_day=None,
        )
    )


async def save_blocks(tx: Transaction, account: Account, blocks: Blocks) -> None:
    """Write the blocks of an organization whose row this transaction has locked."""
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == account.id)
        .values(
            blocks=[_stored(block) for block in blocks.blocks],
            probing_until=blocks.probing_until,
        )
    )


async def lower_day(tx: Transaction, account: Account, limit: int) -> None:
    """Note the limit that the message of a 45 named; a lower one that is known stays."""
    if account.lowered_day is None or limit < account.lowered_day:
        await _set(tx, account, lowered_day=limit)


async def set_plan(tx: Transaction, key: OrganizationKey, plan: Plan) -> Plan | None:
    """Set the plan from now on, and forget what a message lowered; return the one set before."""
    account = await lock(tx, key)
    await _set(tx, account, plan=plan.value, lowered_day=None)
    return account.plan


async def mute(tx: Transaction, account: Account, until: float) -> None:
    """Post no new alert about the organization before `until`."""
    await _set(tx, account, muted_until=until)


async def take_turn(tx: Transaction, key: OrganizationKey, seen_at: float) -> bool:
    """Note that the watcher's turn for the organization is now; False when it was taken already.

    `seen_at` is when the last one was, as far as the caller knows.
    """
    account = await lock(tx, key)
    taken = await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == account.id, organizations.c.watched_at <= seen_at)
        .values(watched_at=account.now)
    )
    return taken.rowcount == 1


async def _set(tx: Transaction, account: Account, **values: object) -> None:
    statement = update(organizations).where(organizations.c.id == account.id)
    await tx.connection.execute(statement.values(**values))
