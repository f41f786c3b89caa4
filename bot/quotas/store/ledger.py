"""The ledger of inventory calls, which stores calls, the slots that they use, and blocks.

There is one row per organization and one row per call. Calls are numbered, so the number of calls
in a day is the difference between two call numbers. A call is granted if it fits beside the calls
that were counted and those with a number between the newest of these and its own. If another
process takes a number first, its call is therefore counted, and the next number is tried.

The row of a call that is a write through the gateway holds what the audit log says about it, until
its entry is written in the same transaction. If the process dies between the call and the entry,
the `quota_tidy` job writes the entry. The job also deletes old calls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Update,
    and_,
    bindparam,
    exists,
    select,
    update,
)

from bot.errors import DatabaseUnavailable
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    LIMITS,
    Limit,
    LimitKind,
    Plan,
    ReportedDay,
    applying,
    day_began_at,
    share_of,
)
from bot.quotas.rules.quota import (
    HOLD_SECONDS,
    HOUR_SECONDS,
    ORDER,
    SLOT_SECONDS,
    Blocks,
    NotNow,
    Standing,
    Terms,
    decide,
)
from bot.quotas.store.accounts import (
    BLOCKS,
    IS_GIVEN_UP,
    UNSENT,
    load,
    load_all,
    load_locked,
    lock,
)
from bot.quotas.tables import quota_calls as calls
from bot.quotas.tables import quota_organizations as organizations
from bot.services.calls import CallCause, CallClass
from bot.store import audit, jobs
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction, insert_into
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.tables import EpochSeconds


@dataclass(frozen=True)
class CallRequest:
    """A call to reserve. `share` is a gateway client's share of the limits (1 for other calls)."""

    key: OrganizationKey
    cause: CallCause
    terms: Terms
    share: float = 1.0

    @property
    def is_probe(self) -> bool:
        """True for the single test call at the end of a pause."""
        return self.cause.call_class is CallClass.PROBE

    @property
    def written(self) -> Mapping[str, object] | None:
        """What the audit log says about the call, if it's a write."""
        cause = self.cause
        if cause.write is None:
            return None
        return {**asdict(cause.write), "client": cause.client, "organization": str(self.key)}


@dataclass(frozen=True)
class Reservation:
    """A granted call, and the organization's standing before it.

    `asked_at` is the time when the reservation was requested, in seconds since the machine started.
    """

    request: CallRequest
    account: Standing
    asked_at: float

    @property
    def number(self) -> int:
        """The call's number in its organization."""
        return self.account.made + 1

    @property
    def at(self) -> float:
        """The time of the reservation according to the database's clock."""
        return self.account.now


class ClockCorrected(DatabaseUnavailable):
    """The database's clock was corrected, so the stored times must be moved first."""


async def reserve(
    tx: Transaction,
    request: CallRequest,
    asked_at: float,
    agrees: Callable[[float, float], bool],
) -> Reservation | NotNow:
    """Reserve a call, or return the reason for declining it if a block or a limit prevents it.

    Raise ClockCorrected if the database's time doesn't agree with the time `asked_at`. Counting
    calls and adding a call take one statement each, so only a probe needs a transaction.
    """
    key = request.key
    terms = request.terms
    if request.is_probe:
        # The lock allows only one probe. A second probe waits and then finds the first probe.
        await lock(tx, key)
    account = None
    while True:
        if account is None or _obstacles(account, request):
            account = await load(tx, key, terms)
            if not account.id:
                account = await load_locked(tx, key, terms)
            if not agrees(account.now, asked_at):
                raise ClockCorrected
            decline = await _decline(tx, account, request)
            if decline is not None:
                return decline
        reservation = Reservation(request, account, asked_at)
        if await _insert(tx, [reservation]):
            if request.is_probe:
                await change(tx, account.id, probing_until=account.now + HOLD_SECONDS)
            return reservation
        # The number's call of another process counts too, whatever else it did.
        account = account.with_one_more()


async def reserve_some(
    tx: Transaction,
    requests: Sequence[CallRequest],
    asked_at: float,
    agrees: Callable[[float, float], bool],
) -> list[Reservation | None]:
    """Reserve the calls that clearly have room, usually in two statements for all of them.

    None stands for a call that needs `reserve`.
    """
    terms = requests[0].terms
    accounts = await load_all(tx, terms, {request.key for request in requests})
    reserved: list[Reservation | None] = [None] * len(requests)
    while True:
        granted = dict[int, Reservation]()
        for place, request in enumerate(requests):
            account = accounts.get(request.key)
            if reserved[place] or account is None or not agrees(account.now, asked_at):
                continue
            if not _obstacles(account, request):
                granted[place] = Reservation(request, account, asked_at)
                accounts[request.key] = account.with_one_more()
        if not granted:
            return reserved
        # Where another process took the number, its call counts, and the next number is tried.
        stored = await _insert(tx, granted.values())
        for place, call in granted.items():
            if (call.account.id, call.number) in stored:
                reserved[place] = call


async def _insert(tx: Transaction, granted: Iterable[Reservation]) -> set[tuple[int, int]]:
    """Store granted calls, except those whose number another process has taken.

    Return each stored call's organization and number.
    """
    rows = [
        {
            "organization": call.account.id,
            "number": call.number,
            "reserved_at": call.at,
            # Until its response arrives, a call may reach the service at any time in its hold.
            "slot_free_at": call.at + HOLD_SECONDS + SLOT_SECONDS,
            "permit_until": call.at + HOLD_SECONDS,
            "kind": call.request.cause.kind,
            "slack_user_id": call.request.cause.caller,
            "written": call.request.written,
        }
        # In one order, so that two processes never wait for each other's calls.
        for call in sorted(granted, key=lambda call: (call.account.id, call.number))
    ]
    stored = await tx.execute(_CALLS_UNLESS_THERE, rows)
    return {(organization, number) for organization, number in stored}


def _obstacles(account: Standing, request: CallRequest) -> list[NotNow]:
    """Return the block or the limit that prevents the call, or else the shares that may be used up.

    A client's usage never exceeds the organization's, so most clients needn't be counted.
    """
    now = account.now
    in_use = account.in_use
    call_class = request.cause.call_class
    decline = decide(call_class, now, limits=account.limits, in_use=in_use, blocks=account.blocks)
    if decline is not None:
        return [decline]
    if request.share == 1:
        return []
    by_kind = (applying(account.limits, kind, call_class) for kind in ORDER)
    shares = [share_of(limits, request.share) for limits in by_kind if limits]
    return [NotNow(now, its) for its in shares if in_use.of(its[-1].kind) >= its[-1].most]


async def _decline(tx: Transaction, account: Standing, request: CallRequest) -> NotNow | None:
    """Return the reason for declining the call, with the time to ask again, or None to grant it."""
    for decline in _obstacles(account, request):
        if not decline.limits:
            return decline
        caller = request.cause.caller if decline.is_share else None
        at = await free_at(tx, account, decline.limits[-1], caller)
        if at is not None or caller is None:
            return replace(decline, free_at=at or account.now)
    return None


_CALLS_UNLESS_THERE = (
    insert_into(calls).on_conflict_do_nothing().returning(calls.c.organization, calls.c.number)
)


async def free_at(
    tx: Transaction, account: Standing, limit: Limit, caller: str | None = None
) -> float | None:
    """Return the time when one more call will be allowed, or None if it's allowed now.

    If a caller is given, only this caller's calls count.
    """
    is_day = limit.kind is LimitKind.DAY
    if is_day and limit.until is not None and caller is None:
        return limit.until
    now = account.now
    parameters = {
        "organization": account.id,
        "since": day_began_at(account.reported, now) - HOLD_SECONDS if is_day else now,
        "earlier": limit.most - 1,
        "caller": caller,
    }
    last_to_leave = _last_to_leave(limit.kind, is_one_caller=caller is not None)
    at: float | None = await tx.scalar(last_to_leave, parameters)
    if at is None or not is_day:
        return at
    return limit.until or at + HOLD_SECONDS + DAY_SECONDS


# Cached, because building a statement takes longer than executing it.
@cache
def _last_to_leave(kind: LimitKind, *, is_one_caller: bool) -> Select[tuple[float]]:
    since = bindparam("since", type_=EpochSeconds)
    if kind is LimitKind.DAY:
        column, is_counted = calls.c.reserved_at, calls.c.slot_free_at != UNSENT
    else:
        column = calls.c.slot_free_at if kind is LimitKind.MINUTE else calls.c.permit_until
        is_counted = calls.c.slot_free_at > since
    its = select(column).where(
        calls.c.organization == bindparam("organization"), column > since, is_counted
    )
    if is_one_caller:
        its = its.where(calls.c.slack_user_id == bindparam("caller"))
    earlier = bindparam("earlier", type_=Integer)
    return its.order_by(column.desc()).offset(earlier).limit(1)


# The time differs if the database lost the call and another call took its number.
_THE_CALL = and_(
    calls.c.organization == bindparam("its_organization"),
    calls.c.number == bindparam("its_number"),
    calls.c.reserved_at == bindparam("its_time"),
)


def _its(call: Reservation) -> dict[str, float]:
    return {"its_organization": call.account.id, "its_number": call.number, "its_time": call.at}


async def settle(tx: Transaction, ended: Iterable[tuple[Reservation, float]]) -> None:
    """Record that calls ended, so many seconds after their responses' headers arrived.

    A minute slot becomes free 60 s after the headers.
    """
    values = [
        {**_its(reservation), "left": SLOT_SECONDS - seconds, **tx.clock_parameters}
        for reservation, seconds in ended
    ]
    await tx.execute(_settled(tx.clock), values)


# Cached, because building a statement takes longer than executing it.
@cache
def _settled(clock: ColumnElement[float]) -> Update:
    slot_free_at = clock + bindparam("left", type_=EpochSeconds)
    settled = update(calls).where(_THE_CALL)
    return settled.values(slot_free_at=slot_free_at, permit_until=clock)


async def is_settled(tx: Transaction, reservation: Reservation) -> bool:
    """Return True if the database has recorded that the call ended.

    Return False if the call hasn't ended or if the database lost the call.
    """
    has_ended = (calls.c.permit_until <= tx.clock) & ~IS_GIVEN_UP
    query = select(calls.c.number).where(_THE_CALL, has_ended)
    its = {**_its(reservation), **tx.clock_parameters}
    return await tx.scalar(query, its) is not None


async def give_back(tx: Transaction, unused: Reservation) -> None:
    """Record that a call was never sent, so that it no longer counts against any limit."""
    taken_back = update(calls).where(_THE_CALL)
    unsent = {"slot_free_at": UNSENT, "permit_until": UNSENT, "written": None}
    await tx.execute(taken_back.values(unsent), _its(unused))
    if unused.request.is_probe:
        await change(tx, unused.account.id, probing_until=0.0)


async def move(tx: Transaction, seconds: float) -> None:
    """Move the times of calls and limits, because the clock was corrected by this many seconds.

    A call in flight is settled by the time of its reservation, so that time stays.
    """
    ended = update(calls).where(calls.c.permit_until <= tx.clock - seconds)
    reserved = ended.values(reserved_at=calls.c.reserved_at + seconds)
    await tx.execute(reserved, tx.clock_parameters)
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
    values = {f"reported_{name}": value for name, value in vars(reported).items()}
    await tx.execute(
        update(organizations)
        .where(organizations.c.id == reservation.account.id, older)
        .values(**values, lowered_day=None)
    )


async def save_blocks(tx: Transaction, account: Standing, blocks: Blocks) -> None:
    """Save an organization's blocks. The transaction must have locked the organization's row."""
    stored = BLOCKS.dump_python(blocks.blocks, mode="json")
    await change(tx, account.id, blocks=stored, probing_until=blocks.probing_until)


async def change(tx: Transaction, organization: int, **values: object) -> None:
    """Set the given columns of an organization's row."""
    statement = update(organizations).where(organizations.c.id == organization)
    await tx.write(statement.values(**values))


async def set_plan(tx: Transaction, organization: int, plan: Plan) -> None:
    """Set the organization's plan, and restore the limits that a 429 lowered.

    If the last reported daily limit is below the plan's limit, raise it to the plan's limit. A
    lower limit that is used up would prevent the call that reports the new limit.
    """
    lowered = {"lowered_day": None, "lowered_concurrent": None, "lowered_minute": None}
    await change(tx, organization, plan=plan.value, **lowered)
    limit = LIMITS[plan].day
    used = organizations.c.reported_limit - organizations.c.reported_remaining
    await tx.execute(
        update(organizations)
        .where(organizations.c.id == organization, organizations.c.reported_limit < limit)
        .values(reported_limit=limit, reported_remaining=limit - used)
    )


TIDY_JOB = "quota_tidy"
TIDY_EVERY = timedelta(hours=1)
# After this time, every call of a process that was killed has ended.
AFTER_HOLD = timedelta(seconds=20)
# Keep calls until their hour is older than this, which covers a day of 25 hours and a hold.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
_IS_UNRECORDED = calls.c.written.is_not(None)


async def record_write(tx: Transaction, organization: int, number: int, status: int | None) -> None:
    """Write the entry of a call that is a write, unless that was done before.

    `status` is the HTTP status of the answer, or None if the outcome is unknown.
    """
    its = _IS_UNRECORDED & (calls.c.organization == organization) & (calls.c.number == number)
    row = (await tx.execute(select(calls).where(its).with_for_update())).first()
    if row is None:
        return
    await tx.write(update(calls).where(its).values(written=None))
    key, detail = row.written["organization"], {**row.written, "status": status}
    await audit.append(tx, AuditEntry(row.slack_user_id, "gateway.write", key, detail))


async def plan_tidying(tx: Transaction) -> None:
    """Run the job soon, because a process that was killed may have left writes."""
    due_at = await tx.now() + AFTER_HOLD
    await jobs.put(tx, Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, due_at))


async def tidy(_job: Job, lease: Lease) -> datetime:
    """Record writes that never came back, and delete old calls. Return the next time to run.

    Each organization's newest old call is kept.
    """
    database = lease.database
    now = await database.now()
    never_came_back = _IS_UNRECORDED & (calls.c.permit_until <= now.timestamp())
    query = select(calls.c.organization, calls.c.number).where(never_came_back)
    async with database.read_only() as tx:
        rows = await tx.execute(query.order_by(calls.c.reserved_at))
        unrecorded = rows.all()
    for organization, number in unrecorded:
        async with database.transaction() as tx:
            await record_write(tx, organization, number, None)
    oldest = (now.timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS * HOUR_SECONDS
    later = calls.alias()
    its = (later.c.organization == calls.c.organization) & (later.c.number > calls.c.number)
    # A call that was in flight when the clock was corrected has kept its `reserved_at`.
    is_old = (calls.c.reserved_at < oldest) & (calls.c.permit_until < oldest)
    is_over = is_old & exists().where(its, later.c.reserved_at < oldest)
    removed = 1
    while removed:
        async with database.transaction() as tx:
            removed = await tx.remove_some(calls, is_over)
    return now + TIDY_EVERY
