"""The ledger of inventory calls: who made how many, which slots are held, what blocks us.

One row an organization and one row a call. Calls are numbered, so that the calls of a day are a
difference of two numbers, however many there are; and a number can be taken once, so that whoever
counted before somebody else took the next number has to count again.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    Update,
    bindparam,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from bot.errors import DatabaseUnavailable
from bot.model.blocks import Block, Blocks
from bot.model.calls import CallCause
from bot.model.days import ToldDay, leaves_day_at
from bot.model.organization import OrganizationKey
from bot.model.plans import CallClass, Plan
from bot.model.quota import (
    Blocked,
    Full,
    Granted,
    HeldCall,
    Holdings,
    LimitKind,
    Terms,
    decide,
)
from bot.store.accounts import Account, load_or_add, lock
from bot.store.engine import EpochSeconds, Transaction
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations

# Each time somebody else took the next number; only as many can as there are calls in a minute.
MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What is asked of the ledger."""

    key: OrganizationKey
    cause: CallCause
    call_class: CallClass
    terms: Terms


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted call: its organization, its number, and what was in use when it was granted."""

    organization: int
    number: int
    granted: Granted


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why a call was not granted, and the database's time when that was decided."""

    reason: Full | Blocked
    now: float


async def reserve(tx: Transaction, request: CallRequest) -> Reservation | NotNow:
    """Reserve one call, minute, day and concurrency together, or say why not.

    One statement counts and one writes, so it needs no transaction around it but for a probe.

    Raises:
        DatabaseUnavailable: Others were first again and again.
    """
    if request.call_class is CallClass.PROBE:
        # There is one probe: whoever finds the organization locked waits, and sees it.
        await lock(tx, request.key)
    for _ in range(MOST_TRIES):
        account = await load_or_add(tx, request.key, request.terms)
        decision = decide(
            request.call_class,
            account.now,
            limits=account.limits,
            in_use=account.in_use,
            day=account.day,
            blocks=account.blocks,
        )
        if isinstance(decision, Full):
            return NotNow(await with_time(tx, account, decision, request.terms), account.now)
        if isinstance(decision, Blocked):
            return NotNow(decision, account.now)
        if await _take_number(tx, account, request):
            return Reservation(account.id, account.made + 1, decision)
    raise DatabaseUnavailable


async def _take_number(tx: Transaction, account: Account, request: CallRequest) -> bool:
    """Write the call under the next number; False when somebody took that meanwhile."""
    hold = HeldCall.unanswered(account.now, request.terms.timeout_seconds)
    values = {
        "organization": account.id,
        "number": account.made + 1,
        "reserved_at": account.now,
        "slot_free_at": hold.slot_free_at,
        "permit_until": hold.permit_until,
        "kind": request.cause.kind,
        "slack_user_id": request.cause.slack_user_id or "",
    }
    taken = await tx.connection.execute(_call_unless_there(tx.is_postgres), values)
    if taken.rowcount == 1 and request.call_class is CallClass.PROBE:
        await save_blocks(tx, account, account.blocks.probing(hold.permit_until))
    return taken.rowcount == 1


@cache
def _call_unless_there(is_postgres: bool) -> Insert:  # noqa: FBT001
    insert = postgresql.insert(calls) if is_postgres else sqlite.insert(calls)
    return insert.on_conflict_do_nothing()


async def _holdings(tx: Transaction, account: Account) -> Holdings:
    """When what the organization holds now is free again."""
    query = select(calls.c.slot_free_at, calls.c.permit_until).where(
        calls.c.organization == account.id, calls.c.slot_free_at > account.now
    )
    rows = await tx.connection.execute(query)
    return Holdings.of([HeldCall(*row) for row in rows], account.now)


async def with_time(tx: Transaction, account: Account, full: Full, terms: Terms) -> Full:
    """The same with the time when there is room again."""
    if full.kind is not LimitKind.DAY:
        held = await _holdings(tx, account)
        # Something was given back since it was counted: now is the time.
        free_at = held.free_at(full.kind, full.allowed) or account.now
    elif account.day.resets_at is not None:
        free_at = account.day.resets_at
    else:
        free_at = await _day_free_at(tx, account, full, terms)
    return replace(full, free_at=free_at)


async def _day_free_at(tx: Transaction, account: Account, full: Full, terms: Terms) -> float:
    """When enough of the oldest calls have left a day of any 25 hours."""
    last_to_leave = account.made - full.used + full.returning
    query = select(calls.c.reserved_at).where(
        calls.c.organization == account.id, calls.c.number == last_to_leave
    )
    reserved_at = (await tx.connection.execute(query)).scalar()
    return account.now if reserved_at is None else leaves_day_at(reserved_at, terms.hold_seconds)


async def settle(tx: Transaction, reservation: Reservation, seconds_since_headers: float) -> None:
    """Note that a call's headers came so long ago, and that it has ended now."""
    # On a clock that now shows zero.
    held = HeldCall.answered(headers_at=-seconds_since_headers, ended_at=0.0)
    values = {
        "its_organization": reservation.organization,
        "its_number": reservation.number,
        "slot_seconds": held.slot_free_at,
    }
    await tx.connection.execute(_settling(tx.clock), {**tx.clock_parameters, **values})


@cache
def _settling(clock: ColumnElement[float]) -> Update:
    slot_free_at = clock + bindparam("slot_seconds", type_=EpochSeconds)
    return (
        update(calls)
        .where(calls.c.organization == bindparam("its_organization"))
        .where(calls.c.number == bindparam("its_number"))
        .values(slot_free_at=slot_free_at, permit_until=clock)
    )


async def note_told(tx: Transaction, reservation: Reservation, told: ToldDay) -> None:
    """Note what the service told with a call's answer, unless a later call's answer told more."""
    older = (organizations.c.told_number.is_(None)) | (organizations.c.told_number < told.number)
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == reservation.organization, older)
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
    stored = [_stored(block) for block in blocks.blocks]
    await _set(tx, account.id, blocks=stored, probing_until=blocks.probing_until)


def _stored(block: Block) -> dict[str, Any]:
    return {
        "code": int(block.code),
        "since": block.since,
        "until": block.until,
        "failed_tries": block.failed_tries,
    }


async def lower_day(tx: Transaction, account: Account, limit: int) -> None:
    """Note the limit that the message of a 45 named; a lower one that is known stays."""
    if account.lowered_day is None or limit < account.lowered_day:
        await _set(tx, account.id, lowered_day=limit)


async def set_plan(tx: Transaction, key: OrganizationKey, plan: Plan) -> Plan | None:
    """Set the plan from now on, and forget what a message lowered; return the one set before."""
    organization = await lock(tx, key)
    query = select(organizations.c.plan).where(organizations.c.id == organization)
    before = (await tx.connection.execute(query)).scalar()
    await _set(tx, organization, plan=plan.value, lowered_day=None)
    return Plan(before) if before else None


async def mute(tx: Transaction, key: OrganizationKey, until: float) -> int:
    """Post no new alert about the organization before `until`; return its id, locked."""
    organization = await lock(tx, key)
    await _set(tx, organization, muted_until=until)
    return organization


async def take_turn(tx: Transaction, key: OrganizationKey, seen_at: float) -> bool:
    """Note that the watcher's turn for the organization is now; False when it was taken already.

    `seen_at` is when the last one was, as far as the caller knows.
    """
    organization, now = await lock(tx, key), await tx.now()
    taken = await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == organization, organizations.c.watched_at <= seen_at)
        .values(watched_at=now.timestamp())
    )
    return taken.rowcount == 1


async def put_off_turn(tx: Transaction, key: OrganizationKey, seen_at: float) -> None:
    """Note that a turn that was taken came to nothing: the last one is as good as of `seen_at`."""
    await _set(tx, await lock(tx, key), watched_at=seen_at)


async def _set(tx: Transaction, organization: int, **values: object) -> None:
    statement = update(organizations).where(organizations.c.id == organization)
    await tx.connection.execute(statement.values(**values))
