"""The ledger of inventory calls: who made how many, which slots are held, what blocks us.

One row an organization and one row a call. Calls are numbered, so that the calls of a day are a
difference of two numbers, however many there are; and a number can be taken once, so that whoever
counted before somebody else took the next number has to count again.
"""

from dataclasses import replace
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

from bot.dataclass import dataclass
from bot.errors import DatabaseUnavailable
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import Block, Blocks
from bot.model.quotas.calls import CallCause
from bot.model.quotas.concurrency import LoweredConcurrency
from bot.model.quotas.days import ReportedDay, leaves_day_at
from bot.model.quotas.plans import CallClass, Plan, limits_of
from bot.model.quotas.quota import (
    SLOT_SECONDS,
    Blocked,
    Decision,
    Full,
    Granted,
    HeldCall,
    Holdings,
    LimitKind,
    Terms,
    decide,
    next_free_at,
)
from bot.model.turns import ClientTurn, ClientUse, OthersWait
from bot.store import gateway_waits
from bot.store.accounts import Account, calls_held, load_or_add, lock
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.quota_clock import longest_hold, shorten_holds
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

# Each time somebody else took the next number; only as many can as there are calls in a minute.
MOST_TRIES = 100
# Of times that went through the database.
ROUNDING_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What is asked of the ledger."""

    key: OrganizationKey
    cause: CallCause
    call_class: CallClass
    terms: Terms
    turn: ClientTurn | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted call: its organization, its number, and what was in use when it was granted.

    `at` is when it was reserved, by the database's clock; `asked_at` is when the ledger was asked
    for it, in seconds since this machine's boot.
    """

    organization: int
    number: int
    granted: Granted
    at: float
    asked_at: float = 0.0


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why a call was not granted, and the database's time when that was decided."""

    reason: Full | Blocked | OthersWait
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
        account, decision = await _decide(tx, request)
        if not isinstance(decision, Granted):
            return NotNow(decision, account.now)
        if await _take_number(tx, account, request):
            return Reservation(account.id, account.made + 1, decision, account.now)
    raise DatabaseUnavailable


async def _decide(tx: Transaction, request: CallRequest) -> tuple[Account, Decision | OthersWait]:
    """The organization as it is now, and whether the call may be made; if not, until when."""
    turn, terms = request.turn, request.terms
    if turn is None:
        account, use = await load_or_add(tx, request.key, terms), ClientUse(0, 0)
    else:
        account, use = await gateway_waits.load(tx, request.key, terms, turn)
    decision = decide(
        request.call_class,
        account.now,
        limits=account.limits,
        in_use=account.in_use,
        day=account.day,
        blocks=account.blocks,
    )
    if isinstance(decision, Full):
        full = await with_time(tx, account, decision, terms)
        if full.kind is not LimitKind.DAY and (full.free_at or 0.0) >= _latest(account, terms):
            await shorten_holds(tx, account.id, terms)
        return account, full
    if not isinstance(decision, Granted):
        return account, decision
    if turn is None:
        return account, await _within_share(tx, account, request) or decision
    return account, await gateway_waits.decide(tx, account, turn, use, decision, terms)


async def _within_share(tx: Transaction, account: Account, request: CallRequest) -> Full | None:
    """Why a person has to leave the rest of the minute to others, or None."""
    share, who = request.terms.person_minute, request.cause.slack_user_id
    if share is None or who is None or account.in_use.minute < share:
        return None
    its = (calls.c.organization == account.id) & (calls.c.slot_free_at > account.now)
    own = select(calls.c.slot_free_at).where(its, calls.c.slack_user_id == who)
    slots = list(await tx.connection.scalars(own.order_by(calls.c.slot_free_at)))
    if len(slots) < share:
        return None
    free_at = min(next_free_at(slots, share), _latest(account, request.terms))
    return Full(LimitKind.MINUTE, len(slots), share, free_at, is_of_person=True)


async def _take_number(tx: Transaction, account: Account, request: CallRequest) -> bool:
    """Reserve the call under the next number; False when somebody took that meanwhile."""
    hold = HeldCall.unanswered(account.now, request.terms.timeout_seconds)
    is_taken = await _write_call(tx, account, request, hold)
    if is_taken and request.call_class is CallClass.PROBE:
        await save_blocks(tx, account, account.blocks.probing(hold.permit_until))
    return is_taken


async def _write_call(
    tx: Transaction, account: Account, request: CallRequest, hold: HeldCall
) -> bool:
    """Write a call under the next number; False when somebody took that meanwhile."""
    values = {
        "organization": account.id,
        "number": account.made + 1,
        "reserved_at": account.now,
        "slot_free_at": hold.slot_free_at,
        "permit_until": hold.permit_until,
        "kind": request.cause.kind,
        "slack_user_id": request.cause.caller,
    }
    taken = await tx.connection.execute(_call_unless_there(tx.is_postgres), values)
    return taken.rowcount == 1


@cache
def _call_unless_there(is_postgres: bool) -> Insert:  # noqa: FBT001
    insert = insert_into(calls, is_postgres=is_postgres)
    return insert.on_conflict_do_nothing()


async def _holdings(tx: Transaction, account: Account) -> Holdings:
    """When what the organization holds now is free again."""
    held = await calls_held(tx, account)
    return Holdings.of([call for call, _ in held], account.now)


async def with_time(tx: Transaction, account: Account, full: Full, terms: Terms) -> Full:
    """The same with the time when there is room again."""
    if full.kind is not LimitKind.DAY:
        held = await _holdings(tx, account)
        # Something was given back since it was counted: now is the time. Nothing is held for
        # longer than a call that begins now, but where the clock was set back.
        free_at = held.free_at(full.kind, full.allowed) or account.now
        free_at = min(free_at, _latest(account, terms))
    elif account.day.resets_at is not None:
        free_at = account.day.resets_at
    else:
        free_at = await _day_free_at(tx, account, full, terms)
    return replace(full, free_at=free_at)


def _latest(account: Account, terms: Terms) -> float:
    return account.now + longest_hold(terms)


async def _day_free_at(tx: Transaction, account: Account, full: Full, terms: Terms) -> float:
    """When enough of the oldest calls have left a day of any 25 hours."""
    last_to_leave = account.made - full.used + full.returning
    query = select(calls.c.reserved_at).where(
        calls.c.organization == account.id, calls.c.number == last_to_leave
    )
    reserved_at = (await tx.connection.execute(query)).scalar()
    return account.now if reserved_at is None else leaves_day_at(reserved_at, terms.hold_seconds)


async def settle(
    tx: Transaction,
    reservation: Reservation,
    seconds_since_headers: float,
    request: CallRequest | None = None,
) -> None:
    """Note that a call's headers came so long ago, and that it has ended now.

    With `request` a call that the database has lost, as at a failover, is counted again: its number
    may be another call's by now, and then its time is not.
    """
    # On a clock that now shows zero.
    held = HeldCall.answered(headers_at=-seconds_since_headers, ended_at=0.0)
    values = {
        "its_organization": reservation.organization,
        "its_number": reservation.number,
        "its_time": reservation.at,
        "slot_seconds": held.slot_free_at,
    }
    settled = await tx.connection.execute(_settling(tx.clock), {**tx.clock_parameters, **values})
    if settled.rowcount == 0 and request is not None:
        await _count_again(tx, request, held)


async def _count_again(tx: Transaction, request: CallRequest, held: HeldCall) -> None:
    for _ in range(MOST_TRIES):
        account = await load_or_add(tx, request.key, request.terms)
        later = HeldCall(account.now + held.slot_free_at, account.now + held.permit_until)
        if await _write_call(tx, account, request, later):
            return
    raise DatabaseUnavailable


async def is_settled(tx: Transaction, reservation: Reservation, terms: Terms) -> bool:
    """Whether the call's end is written already; False where the database has lost it."""
    query = select(calls.c.permit_until, calls.c.reserved_at).where(
        calls.c.organization == reservation.organization,
        calls.c.number == reservation.number,
        calls.c.reserved_at == reservation.at,
    )
    row = (await tx.connection.execute(query)).first()
    if row is None:
        return False
    held = HeldCall.unanswered(row.reserved_at, terms.timeout_seconds)
    return bool(abs(row.permit_until - held.permit_until) > ROUNDING_SECONDS)


async def give_back(tx: Transaction, unused: Reservation) -> None:
    """Note that a call was never sent, so that it holds nothing; of the day it still counts."""
    await settle(tx, unused, SLOT_SECONDS)


@cache
def _settling(clock: ColumnElement[float]) -> Update:
    slot_free_at = clock + bindparam("slot_seconds", type_=EpochSeconds)
    return (
        update(calls)
        .where(calls.c.organization == bindparam("its_organization"))
        .where(calls.c.number == bindparam("its_number"))
        .where(calls.c.reserved_at == bindparam("its_time", type_=EpochSeconds))
        .values(slot_free_at=slot_free_at, permit_until=clock)
    )


async def note_reported(tx: Transaction, reservation: Reservation, reported: ReportedDay) -> None:
    """Note what the service reported with an answer, unless a later answer reported more."""
    older = (organizations.c.reported_number.is_(None)) | (
        organizations.c.reported_number < reported.number
    )
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == reservation.organization, older)
        .values(
            reported_number=reported.number,
            reported_limit=reported.limit,
            reported_remaining=reported.remaining,
            reported_unsure=reported.unsure,
            reported_resets_at=reported.resets_at,
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


async def lower_concurrency(tx: Transaction, account: Account, to: LoweredConcurrency) -> None:
    """Note how many calls at once the service takes, and until when that holds."""
    await _set(tx, account.id, lowered_concurrent=to.limit, lowered_until=to.until)


async def set_plan(tx: Transaction, key: OrganizationKey, plan: Plan) -> None:
    """Set the plan from now on, and forget what a 429 lowered.

    A smaller limit that was reported is of the old plan: of the new one as much is used.
    Otherwise a day that is used up would never be heard of again, as no call is granted.
    """
    organization = await lock(tx, key)
    its = organizations.c.id == organization
    lowered = {"lowered_day": None, "lowered_concurrent": None, "lowered_until": None}
    await _set(tx, organization, plan=plan.value, **lowered)
    limit = limits_of(plan).day
    used = organizations.c.reported_limit - organizations.c.reported_remaining
    await tx.connection.execute(
        update(organizations)
        .where(its, organizations.c.reported_limit < limit)
        .values(reported_limit=limit, reported_remaining=limit - used)
    )


async def mute(tx: Transaction, key: OrganizationKey, until: float, by: str | None) -> int:
    """Post no new alert about the organization before `until`; return its id, locked.

    `by` is the name of who muted it; None where a mute is taken back.
    """
    organization = await lock(tx, key)
    await _set(tx, organization, muted_until=until, muted_by=by)
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


async def postpone_turn(tx: Transaction, key: OrganizationKey, seen_at: float) -> None:
    """Note that a turn that was taken came to nothing: the last one is as good as of `seen_at`."""
    await _set(tx, await lock(tx, key), watched_at=seen_at)


async def _set(tx: Transaction, organization: int, **values: object) -> None:
    statement = update(organizations).where(organizations.c.id == organization)
    await tx.connection.execute(statement.values(**values))
