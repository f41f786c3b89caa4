"""Jobs: stored work with a due time and an owner.

Each job has a unique key, and adding a job replaces any job with the same key. The process that
runs a job holds a lease. If the process stops renewing the lease, the lease expires and another
process takes the job. Each run has a generation of its own. Replacing a running job increments the
generation too, so the end of the old run doesn't remove the new job.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Update,
    bindparam,
    case,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import Insert

from bot.store.engine import Transaction, insert_into
from bot.store.tables import EpochSeconds, jobs

LEASE_SECONDS = 20
# After this many consecutive failures, the pauses between runs add up to about a minute.
LATE_TRIES = 6


@dataclass(frozen=True)
class Job:
    """A stored piece of work with a unique key, such as `apply:FW…`.

    `kind` selects the runner, and `subject` is the ID of the object to work on. The payload never
    includes a secret. `generation` is 1 in the first run, and then grows. `tries` is the number of
    consecutive failed runs.
    """

    key: str
    kind: str
    subject: str
    due_at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0
    tries: int = 0


@dataclass(frozen=True)
class Again:
    """The time of a job's next run, and the number of consecutive failures so far."""

    at: datetime
    tries: int = 0


# Statements are built only once, because building them takes longer than executing them.
_INSERT = insert_into(jobs)
_AGAIN = {
    **{name: _INSERT.excluded[name] for name in ("kind", "subject", "due_at", "tries", "payload")},
    "generation": jobs.c.generation + case((jobs.c.owner.is_(None), 0), else_=1),
}
_PUT = _INSERT.on_conflict_do_update(index_elements=[jobs.c.key], set_=_AGAIN)
_COLUMNS = [jobs.c[part.name] for part in fields(Job)]
_ENSURE = _INSERT.on_conflict_do_nothing(index_elements=[jobs.c.key])
_MINE = (jobs.c.key == bindparam("its_key")) & (jobs.c.owner == bindparam("its_owner"))
_UNCHANGED = _MINE & (jobs.c.generation == bindparam("its_generation"))
_REMOVE = delete(jobs).where(_UNCHANGED)
_RESCHEDULE = (
    update(jobs)
    .where(_UNCHANGED)
    .values(due_at=bindparam("again_at"), tries=bindparam("again_tries"))
)
_FREE = {"owner": None, "leased_until": None}
_RELEASE = update(jobs).where(_MINE).values(_FREE)


@cache
def _putting(clock: ColumnElement[float]) -> Insert:
    """Return the statement that puts a job by the clock that the database reads in it."""
    new = _INSERT.values(due_at=clock + bindparam("its_delay", type_=EpochSeconds))
    return new.on_conflict_do_update(index_elements=[jobs.c.key], set_=_AGAIN)


@cache
def _claiming(clock: ColumnElement[float], *, newest_first: bool) -> Update:
    """Return the statement that claims due jobs. The database reads the clock in it."""
    is_free = jobs.c.leased_until.is_(None) | (jobs.c.leased_until <= clock)
    is_excluded = jobs.c.kind.in_(bindparam("exclude_kinds", expanding=True))
    chosen = (
        select(jobs.c.key)
        .where(jobs.c.due_at <= clock, is_free, ~is_excluded)
        .order_by(jobs.c.due_at.desc() if newest_first else jobs.c.due_at)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True)
    )
    return (
        update(jobs)
        .where(jobs.c.key.in_(chosen.scalar_subquery()))
        .values(
            owner=bindparam("its_owner"),
            leased_until=clock + LEASE_SECONDS,
            generation=jobs.c.generation + 1,
        )
        .returning(*_COLUMNS)
    )


@cache
def _renewing(clock: ColumnElement[float], *, skip_locked: bool) -> Update:
    is_held = _MINE & (jobs.c.leased_until > clock)
    held = select(jobs.c.key).where(is_held).with_for_update(skip_locked=skip_locked)
    renewed = update(jobs).where(jobs.c.key.in_(held.scalar_subquery()))
    return renewed.values(leased_until=clock + LEASE_SECONDS)


@cache
def _renewing_or_failing(clock: ColumnElement[float]) -> Select[Any]:
    """Return a statement that divides by zero if there's no lease, so that no COMMIT follows it."""
    renewed = _renewing(clock, skip_locked=False).returning(jobs.c.key).cte()
    return select(1 // func.count()).select_from(renewed)


def _new_row(job: Job) -> dict[str, Any]:
    return {**vars(job), "payload": dict(job.payload), "generation": 0, "tries": 0}


async def put(tx: Transaction, job: Job) -> None:
    """Add the job or replace the job with the same key, and reset the failure count."""
    await tx.write(_PUT, _new_row(job))
    tx.has_due_job |= job.due_at <= await tx.now()


async def put_after(tx: Transaction, job: Job, delay: timedelta = timedelta(0)) -> None:
    """Add the job like `put`, but let it be due after the delay. Its `due_at` doesn't count.

    The database adds the delay to its own time, so a transaction needn't ask for the time first.
    """
    new = {**_new_row(job), "its_delay": delay.total_seconds(), **tx.clock_parameters}
    del new["due_at"]
    await tx.write(_putting(tx.clock), new)
    tx.has_due_job |= not delay


async def ensure(tx: Transaction, job: Job) -> bool:
    """Add the job unless a job with the same key exists. Return True if the job was added."""
    added = await tx.execute(_ENSURE, _new_row(job))
    tx.has_due_job = True
    return added.rowcount > 0


async def postpone(tx: Transaction, key: str, due_at: datetime) -> None:
    """Postpone the job with this key to `due_at`. A run in progress continues."""
    await tx.write(update(jobs).where(jobs.c.key == key).values(due_at=due_at))


async def drop(tx: Transaction, key: str) -> None:
    """Remove the job with this key, even if the job is running."""
    await tx.write(delete(jobs).where(jobs.c.key == key))


async def claim(
    tx: Transaction,
    owner: str,
    count: int,
    *,
    exclude_kinds: Collection[str] = (),
    newest_first: bool = False,
) -> list[Job]:
    """Claim up to `count` due jobs for `owner`, and return them, oldest first.

    If there are more, claim the oldest, or with `newest_first` the newest. Other owners can't claim
    these jobs until the leases expire. Skip jobs of the kinds in `exclude_kinds`.
    """
    its = {"most": count, "its_owner": owner, "exclude_kinds": list(exclude_kinds)}
    statement = _claiming(tx.clock, newest_first=newest_first)
    rows = await tx.execute(statement, {**its, **tx.clock_parameters})
    return sorted((Job(*row) for row in rows), key=attrgetter("due_at"))


async def renew(tx: Transaction, owner: str, key: str, *, skip_locked: bool = False) -> bool:
    """Renew the lease on a job, and return True if `owner` still held it.

    If `skip_locked` is True, skip the job if another transaction has locked its row.
    """
    its = {"its_owner": owner, "its_key": key, **tx.clock_parameters}
    renewed = await tx.execute(_renewing(tx.clock, skip_locked=skip_locked), its)
    return renewed.rowcount > 0


async def renew_or_fail(tx: Transaction, owner: str, key: str) -> None:
    """Renew the lease on a job with the next statement, which fails if `owner` doesn't hold it."""
    its = {"its_owner": owner, "its_key": key, **tx.clock_parameters}
    await tx.write(_renewing_or_failing(tx.clock), its)


async def finish(tx: Transaction, owner: str, job: Job, again: Again | None) -> bool:
    """End a run. If `again` is None, remove the job. Otherwise, reschedule it.

    If the job was replaced during the run, the new job stays unchanged, and can now be claimed. If
    this transaction won't claim it, end the transaction, and return True.
    """
    lease = {"its_key": job.key, "its_owner": owner}
    unchanged = {**lease, "its_generation": job.generation}
    if again is None:
        await tx.write(_REMOVE, unchanged)
    else:
        values = {"again_at": again.at, "again_tries": again.tries}
        await tx.write(_RESCHEDULE, {**unchanged, **values})
        tx.has_due_job = True
    if tx.has_due_job:
        await tx.write(_RELEASE, lease)
        return False
    await tx.end_with_next()
    released = await tx.execute(_RELEASE, lease)
    return released.rowcount > 0


async def release_all(tx: Transaction) -> None:
    """End every lease that could delay a job. Only call this if no other process is running."""
    last = await tx.now() + timedelta(seconds=LEASE_SECONDS)
    is_delayed = (jobs.c.due_at <= last) & jobs.c.owner.is_not(None)
    await tx.write(update(jobs).where(is_delayed).values(_FREE))


async def count(tx: Transaction) -> tuple[int, int, int]:
    """Count all jobs, due jobs, and late jobs (overdue or failing for at least a minute)."""
    now = await tx.now()
    is_due = jobs.c.due_at <= now
    is_late = (jobs.c.due_at <= now - timedelta(minutes=1)) | (jobs.c.tries >= LATE_TRIES)
    rows = func.count()
    query = select(rows, rows.filter(is_due), rows.filter(is_late)).select_from(jobs)
    total, due, late = (await tx.execute(query)).one()
    return total, due, late
