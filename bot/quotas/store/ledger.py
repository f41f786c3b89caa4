"""The ledger of inventory calls, which stores calls, the slots that they use, and blocks.

There is one row per organization and one row per call. Calls are numbered, so the number of calls
in a day is the difference between two call numbers. If another process takes the next number first,
`reserve` checks the limits again.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from sqlalchemy import ColumnElement, and_, literal, select, update

from bot.errors import DatabaseUnavailable
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    Limit,
    LimitKind,
    Plan,
    ReportedDay,
    applying,
    limits_of,
    share_of,
)
from bot.quotas.rules.quota import (
    HOLD_SECONDS,
    ORDER,
    SLOT_SECONDS,
    Blocks,
    InUse,
    NotNow,
    Terms,
    decide,
)
from bot.quotas.rules.use import Standing
from bot.quotas.store.accounts import BLOCKS, ROUNDING_SECONDS, UNSENT, load, load_locked, lock
from bot.quotas.tables import quota_calls as calls
from bot.quotas.tables import quota_organizations as organizations
from bot.services.calls import CallCause, CallClass
from bot.store.engine import Transaction, insert_into
from bot.store.types import EpochSeconds

# An attempt fails when another process takes the number first, which can happen at most once for
# each call in a minute.
MOST_TRIES = 100


@dataclass(frozen=True)
class CallRequest:
    """A call to reserve. `share` is a gateway client's share of the limits (1 for other calls)."""

    key: OrganizationKey
    cause: CallCause
    terms: Terms
    share: float = 1.0


@dataclass(frozen=True)
class Reservation:
    """A granted call: its organization, its number, and the usage when it was granted.

    `at` is the time of the reservation according to the database's clock. `asked_at` is the time
    when the reservation was requested, in seconds since the machine started.
    """

    organization: int
    number: int
    in_use: InUse
    at: float
    asked_at: float = 0.0


class ClockCorrected(DatabaseUnavailable):
    """The database's clock was corrected, so the stored times must be moved first."""


async def reserve(
    tx: Transaction,
    request: CallRequest,
    asked_at: float = 0.0,
    agrees: Callable[[float, float], bool] = lambda _now, _asked_at: True,
) -> Reservation | NotNow:
    """Reserve a call, or return the reason for declining it if a block or a limit prevents it.

    Raise ClockCorrected if the database's time doesn't agree with the time `asked_at`. Counting
    calls and adding a call take one statement each, so only a probe needs a transaction.
    """
    key = request.key
    terms = request.terms
    if request.cause.call_class is CallClass.PROBE:
        # The lock allows only one probe. A second probe waits and then finds the first probe.
        await lock(tx, key)
    for _ in range(MOST_TRIES):
        account = await load(tx, key, terms)
        if not account.id:
            account = await load_locked(tx, key, terms)
        if not agrees(account.now, asked_at):
            raise ClockCorrected
        decline = await _decline(tx, account, request)
        if decline is not None:
            return decline
        # Until its response arrives, a call may reach the service at any time during its hold.
        over_at = account.now + HOLD_SECONDS
        values = {
            "organization": account.id,
            "number": account.made + 1,
            "reserved_at": account.now,
            "slot_free_at": over_at + SLOT_SECONDS,
            "permit_until": over_at,
            "kind": request.cause.kind,
            "slack_user_id": request.cause.caller,
            "written": request.cause.write and asdict(request.cause.write),
        }
        taken = await tx.connection.execute(_CALL_UNLESS_THERE, values)
        if taken.rowcount == 1:
            if request.cause.call_class is CallClass.PROBE:
                await save_blocks(tx, account, replace(account.blocks, probing_until=over_at))
            number = account.made + 1
            return Reservation(account.id, number, account.in_use, account.now, asked_at)
    raise DatabaseUnavailable


async def _decline(tx: Transaction, account: Standing, request: CallRequest) -> NotNow | None:
    """Return the reason for declining the call, with the time to ask again, or None to grant it."""
    call_class = request.cause.call_class
    in_use = account.in_use
    decline = decide(
        call_class, account.now, limits=account.limits, in_use=in_use, blocks=account.blocks
    )
    if decline is not None and decline.limits:
        at = await free_at(tx, account, decline.limits[-1])
        return replace(decline, free_at=at or account.now)
    if decline is not None or request.share == 1:
        return decline
    # The organization has room, but the client's share may be used up.
    its = calls.c.slack_user_id == request.cause.caller
    for kind in ORDER:
        limits = applying(account.limits, kind, call_class)
        if limits:
            limits = share_of(limits, request.share)
            # A client's usage never exceeds the organization's, so most queries can be skipped.
            if in_use.of(kind) >= limits[-1].most:
                at = await free_at(tx, account, limits[-1], its)
                if at is not None:
                    return NotNow(account.now, limits, free_at=at)
    return None


_CALL_UNLESS_THERE = insert_into(calls).on_conflict_do_nothing()


async def free_at(
    tx: Transaction,
    account: Standing,
    limit: Limit,
    *which: ColumnElement[bool],
) -> float | None:
    """Return the time when one more call will be allowed, or None if it's allowed now."""
    kind = limit.kind
    if kind is LimitKind.DAY:
        if limit.until is not None and not which:
            return limit.until
        column = calls.c.reserved_at
        since = account.day_began_at - HOLD_SECONDS
        uses = (calls.c.reserved_at > since, calls.c.slot_free_at != UNSENT)
    else:
        column = calls.c.slot_free_at if kind is LimitKind.MINUTE else calls.c.permit_until
        uses = (calls.c.slot_free_at > account.now, column > account.now)
    its = select(column).where(calls.c.organization == account.id, *uses, *which)
    last_to_leave = its.order_by(column.desc()).offset(limit.most - 1).limit(1)
    at: float | None = await tx.connection.scalar(last_to_leave)
    if at is None or kind is not LimitKind.DAY:
        return at
    return limit.until or at + HOLD_SECONDS + DAY_SECONDS


def _the_call(reservation: Reservation) -> ColumnElement[bool]:
    # The time differs if the database lost the call and another call took its number.
    return and_(
        calls.c.organization == reservation.organization,
        calls.c.number == reservation.number,
        calls.c.reserved_at == reservation.at,
    )


async def settle(tx: Transaction, reservation: Reservation, seconds_since_headers: float) -> None:
    """Record that a call ended. Its minute slot becomes free 60 s after the headers arrived."""
    slot_free_at = tx.clock + literal(SLOT_SECONDS - seconds_since_headers, EpochSeconds)
    ended = update(calls).where(_the_call(reservation))
    ended = ended.values(slot_free_at=slot_free_at, permit_until=tx.clock)
    await tx.connection.execute(ended, tx.clock_parameters)


async def is_settled(tx: Transaction, reservation: Reservation) -> bool:
    """Return True if the database has recorded that the call ended.

    Return False if the call hasn't ended or if the database lost the call.
    """
    its = _the_call(reservation) & (calls.c.permit_until <= tx.clock)
    query = select(calls.c.permit_until).where(its)
    permit_until = await tx.connection.scalar(query, tx.clock_parameters)
    held = None if permit_until is None else permit_until - reservation.at
    return held is not None and abs(held - HOLD_SECONDS) > ROUNDING_SECONDS


async def give_back(tx: Transaction, unused: Reservation) -> None:
    """Record that a call was never sent, so that it no longer counts against any limit."""
    taken_back = update(calls).where(_the_call(unused))
    unsent = {"slot_free_at": UNSENT, "permit_until": UNSENT, "written": None}
    await tx.connection.execute(taken_back.values(unsent))


async def move(tx: Transaction, seconds: float) -> None:
    """Move the times of calls and limits, because the clock was corrected by this many seconds.

    A call in flight is settled by the time of its reservation, so that time stays.
    """
    ended = update(calls).where(calls.c.permit_until <= tx.clock - seconds)
    reserved = ended.values(reserved_at=calls.c.reserved_at + seconds)
    await tx.connection.execute(reserved, tx.clock_parameters)
    holds = ("slot_free_at", "permit_until")
    sent = update(calls).where(calls.c.slot_free_at != UNSENT)
    await tx.write(sent.values({name: calls.c[name] + seconds for name in holds}))
    times = ("reported_resets_at", "lowered_until", "lowered_minute_until", "watched_at")
    moved = {name: organizations.c[name] + seconds for name in times}
    await tx.write(update(organizations).values(moved))


async def note_reported(tx: Transaction, reservation: Reservation, reported: ReportedDay) -> None:
    """Record the limits that the service reported, unless newer limits are already recorded."""
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


async def save_blocks(tx: Transaction, account: Standing, blocks: Blocks) -> None:
    """Save an organization's blocks. The transaction must have locked the organization's row."""
    stored = BLOCKS.dump_python(blocks.blocks, mode="json")
    await change(tx, account.id, blocks=stored, probing_until=blocks.probing_until)


async def change(tx: Transaction, organization: int, **values: object) -> None:
    """Set the given columns of an organization's row."""
    statement = update(organizations).where(organizations.c.id == organization)
    await tx.write(statement.values(**values))


async def set_plan(tx: Transaction, key: OrganizationKey, plan: Plan) -> None:
    """Set the organization's plan, and restore the limits that a 429 lowered.

    If the last reported daily limit is below the plan's limit, raise it to the plan's limit. A
    lower limit that is used up would prevent the call that reports the new limit.
    """
    organization = await lock(tx, key)
    lowered = {"lowered_day": None, "lowered_concurrent": None, "lowered_minute": None}
    await change(tx, organization, plan=plan.value, **lowered)
    limit = limits_of(plan).day
    used = organizations.c.reported_limit - organizations.c.reported_remaining
    await tx.connection.execute(
        update(organizations)
        .where(organizations.c.id == organization, organizations.c.reported_limit < limit)
        .values(reported_limit=limit, reported_remaining=limit - used)
    )
