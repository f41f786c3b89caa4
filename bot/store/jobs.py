"""Jobs: what is to be done, when, and who is doing it.

A job has a key, so putting it twice keeps one. Who runs it holds a lease; a lease that is not
renewed lapses, and another process takes the job. A job put again while it runs gets a higher
generation, so that finishing the old run does not remove the new request.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    Update,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from bot.dataclass import dataclass
from bot.model.status import JobCount
from bot.store import seals
from bot.store.engine import Transaction
from bot.store.inserts import in_few_sizes, insert_into
from bot.store.tables import jobs

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert

LEASE_SECONDS = 20
# The pauses after so many failures in a row add up to a minute: see `workflows/jobs.py`.
LATE_TRIES = 6
# What a job has that is put again, besides another generation.
PUT_ANEW = ("kind", "subject", "payload", "signature", "due_at", "tries")


@dataclass(frozen=True)
class Job:
    """A job as its runner sees it.

    Attributes:
        key: Unique; what it is about, such as `apply:FW…`.
        kind: Names the runner.
        subject: The id of what it is about.
        due_at: Not before.
        payload: Anything JSON can say; never a secret.
        generation: Raised whenever the job is put again.
        tries: Runs in a row that failed.
        is_genuine: Whether the bot put it as it stands; what else is there is not run.
    """

    key: str
    kind: str
    subject: str
    due_at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0
    tries: int = 0
    is_genuine: bool = True


def _signed_values(tx: Transaction, job: Job) -> dict[str, Any]:
    """What a job's row holds besides its key, its time and its tries."""
    values = {"kind": job.kind, "subject": job.subject, "payload": dict(job.payload)}
    signed = seals.signed(tx, jobs, {"key": job.key, **values})
    return {**values, "signature": signed["signature"]}


def _new_row(tx: Transaction, job: Job) -> dict[str, Any]:
    new = {"key": job.key, "due_at": job.due_at, "generation": 1, "tries": 0}
    return {**new, **_signed_values(tx, job)}


async def put(tx: Transaction, job: Job) -> None:
    """Add the job, or replace the one with its key: its time, its payload, its tries from zero."""
    await tx.connection.execute(_putting(tx.is_postgres), _new_row(tx, job))
    tx.note_job(job.due_at)


# Made once: to make a statement takes longer than to execute it.
@cache
def _putting(is_postgres: bool) -> "Insert":  # noqa: FBT001
    insert = insert_into(jobs, is_postgres=is_postgres)
    new = {name: insert.excluded[name] for name in PUT_ANEW}
    again = {**new, "generation": jobs.c.generation + 1}
    return insert.on_conflict_do_update(index_elements=[jobs.c.key], set_=again)


async def remember(tx: Transaction, job: Job) -> None:
    """Store the payload of a job that is run, unless it was put anew meanwhile."""
    same = (jobs.c.key == job.key) & (jobs.c.generation == job.generation)
    await tx.connection.execute(update(jobs).where(same).values(_signed_values(tx, job)))


async def ensure(tx: Transaction, job: Job) -> bool:
    """Add the job unless one with its key is there; return whether it was added."""
    insert = insert_into(jobs, is_postgres=tx.is_postgres)
    unless_there = insert.on_conflict_do_nothing(index_elements=[jobs.c.key])
    added = await tx.connection.execute(unless_there, _new_row(tx, job))
    tx.note_job(job.due_at)
    return added.rowcount > 0


async def postpone(tx: Transaction, key: str, due_at: datetime) -> None:
    """Have the job run later than it would have; a run that has begun goes on."""
    await tx.connection.execute(update(jobs).where(jobs.c.key == key).values(due_at=due_at))


async def put_selected(
    tx: Transaction, putting: ReturningInsert[datetime], parameters: Mapping[str, object]
) -> list[datetime]:
    """Put the jobs of a statement of `putting_selected`; return when they are due."""
    due = list(await tx.connection.scalars(putting, parameters))
    for due_at in due:
        tx.note_job(due_at)
    return due


def putting_selected(
    kind: str, jobs_found: Select[str, str, datetime], *, is_postgres: bool
) -> ReturningInsert[datetime]:
    """Return what does as `put` for each (key, subject, due) that the query finds.

    The jobs are not signed: of kinds that only show what is stored.
    """
    insert = insert_into(jobs, is_postgres=is_postgres)
    values = {"kind": kind, "payload": {}, "generation": 1, "tries": 0}
    same = [literal(value, jobs.c[name].type) for name, value in values.items()]
    columns = ["key", "subject", "due_at", *values]
    statement = insert.from_select(columns, jobs_found.add_columns(*same))
    again = {
        "due_at": statement.excluded.due_at,
        "tries": 0,
        "generation": jobs.c.generation + 1,
    }
    put = statement.on_conflict_do_update(index_elements=[jobs.c.key], set_=again)
    return put.returning(jobs.c.due_at)


async def drop(tx: Transaction, key: str) -> None:
    """Remove the job, whoever runs it."""
    await tx.connection.execute(delete(jobs).where(jobs.c.key == key))


async def is_any_due(tx: Transaction) -> bool:
    """Return whether a job is due that nobody runs."""
    found = await tx.connection.execute(_any_due(), {"now": await tx.now()})
    return found.first() is not None


@cache
def _any_due() -> Select[Any]:
    return select(jobs.c.key).where(_free(bindparam("now"))).limit(1)


async def claim(
    tx: Transaction,
    owner: str,
    count: int,
    *,
    exclude_kinds: Collection[str] = (),
    exclude_retried: Collection[str] = (),
) -> list[Job]:
    """Take up to `count` due jobs for `owner`, oldest first; each is then nobody else's.

    None is of a kind in `exclude_kinds`, and none of `exclude_retried` that failed before.
    """
    now = await tx.now()
    parameters = {
        "now": now,
        "most": count,
        "exclude_kinds": list(exclude_kinds),
        "exclude_retried": list(exclude_retried),
        "its_owner": owner,
        "until": now + timedelta(seconds=LEASE_SECONDS),
    }
    rows = (await tx.connection.execute(_claiming(), parameters)).all()
    return sorted((_job(tx, row) for row in rows), key=lambda job: job.due_at)


@cache
def _claiming() -> ReturningUpdate[Any]:
    is_excluded = jobs.c.kind.in_(bindparam("exclude_kinds", expanding=True))
    is_retried = jobs.c.kind.in_(bindparam("exclude_retried", expanding=True))
    chosen = (
        select(jobs.c.key)
        .where(_free(bindparam("now")), ~is_excluded)
        .where((jobs.c.tries == 0) | ~is_retried)
        .order_by(jobs.c.due_at)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True)
    )
    return (
        update(jobs)
        .where(jobs.c.key.in_(chosen.scalar_subquery()))
        .values(owner=bindparam("its_owner"), leased_until=bindparam("until"))
        .returning(jobs)
    )


async def renew(
    tx: Transaction, owner: str, keys: Sequence[str], *, skip_locked: bool = False
) -> set[str]:
    """Lengthen the leases that `owner` still holds; return the keys of those.

    With `skip_locked`, a row that another transaction has locked is left as it is.
    """
    now = await tx.now()
    until = now + timedelta(seconds=LEASE_SECONDS)
    parameters = {"its_owner": owner, "its_keys": list(keys), "now": now, "until": until}
    rows = await tx.connection.execute(_renewing(skip_locked), parameters)
    return {row.key for row in rows}


@cache
def _renewing(skip_locked: bool) -> ReturningUpdate[Any]:  # noqa: FBT001
    mine = jobs.c.key.in_(bindparam("its_keys", expanding=True)) & _is_owners()
    held = mine & (jobs.c.leased_until > bindparam("now"))
    unlocked = select(jobs.c.key).where(held).with_for_update(skip_locked=True)
    return (
        update(jobs)
        .where(jobs.c.key.in_(unlocked.scalar_subquery()) if skip_locked else held)
        .values(leased_until=bindparam("until"))
        .returning(jobs.c.key)
    )


async def finish(
    tx: Transaction, owner: str, job: Job, again_at: datetime | None, tries: int = 0
) -> None:
    """End a run: remove the job, or set it for `again_at`; one put meanwhile stays as put."""
    mine = {"its_key": job.key, "its_owner": owner}
    unchanged = {**mine, "its_generation": job.generation}
    if again_at is None:
        removed = await tx.connection.execute(_removing(), unchanged)
        if removed.rowcount == 1:
            return
    else:
        again = {"again_at": again_at, "again_tries": tries}
        await tx.connection.execute(_setting_again(), {**unchanged, **again})
    await tx.connection.execute(_releasing(), mine)


@cache
def _removing() -> Delete:
    return delete(jobs).where(_is_unchanged())


@cache
def _setting_again() -> Update:
    again = update(jobs).where(_is_unchanged())
    return again.values(due_at=bindparam("again_at"), tries=bindparam("again_tries"))


@cache
def _releasing() -> Update:
    return update(jobs).where(_is_mine()).values(owner=None, leased_until=None)


@cache
def _is_mine() -> ColumnElement[bool]:
    return (jobs.c.key == bindparam("its_key")) & _is_owners()


def _is_owners() -> ColumnElement[bool]:
    return jobs.c.owner == bindparam("its_owner")


@cache
def _is_unchanged() -> ColumnElement[bool]:
    return _is_mine() & (jobs.c.generation == bindparam("its_generation"))


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended, as `finish` takes it."""

    owner: str
    job: Job
    again_at: datetime | None
    tries: int = 0


async def finish_all(tx: Transaction, runs: Sequence[Finished]) -> None:
    """As `finish`, for many: their rows are locked in the order of their keys."""
    keys = in_few_sizes([run.job.key for run in runs])
    rows = select(jobs.c.key).where(jobs.c.key.in_(keys)).order_by(jobs.c.key).with_for_update()
    await tx.connection.execute(rows)
    done = [_run_values(run) for run in runs if run.again_at is None]
    if done:
        await tx.connection.execute(_removing(), done)
    again = [
        _run_values(run) | {"again_at": run.again_at, "again_tries": run.tries}
        for run in runs
        if run.again_at is not None
    ]
    if again:
        await tx.connection.execute(_setting_again(), again)
    released = [{"its_key": run.job.key, "its_owner": run.owner} for run in runs]
    await tx.connection.execute(_releasing(), released)


def _run_values(run: Finished) -> dict[str, Any]:
    return {
        "its_key": run.job.key,
        "its_owner": run.owner,
        "its_generation": run.job.generation,
    }


async def fail(tx: Transaction, owner: str, job: Job, again_at: datetime, error: str) -> None:
    """End a run that went wrong: it is tried again at `again_at`."""
    mine = {"its_key": job.key, "its_owner": owner}
    unchanged = {**mine, "its_generation": job.generation}
    values = {"due_at": again_at, "tries": job.tries + 1, "last_error": error}
    await tx.connection.execute(update(jobs).where(_is_unchanged()).values(values), unchanged)
    await tx.connection.execute(_releasing(), mine)


async def release(tx: Transaction, owner: str, keys: Sequence[str]) -> None:
    """End the leases that `owner` still holds: what they are for may be begun anew at once."""
    mine = (jobs.c.owner == owner) & jobs.c.key.in_(keys)
    await tx.connection.execute(update(jobs).where(mine).values(owner=None, leased_until=None))


async def release_all(tx: Transaction) -> None:
    """End every lease: for who knows that no other process is alive."""
    await tx.connection.execute(update(jobs).values(owner=None, leased_until=None))


async def count(tx: Transaction) -> JobCount:
    """Return how many jobs wait, are due, and are late: for a minute, or failing for about one."""
    now = await tx.now()
    late = or_(jobs.c.due_at <= now - timedelta(minutes=1), jobs.c.tries >= LATE_TRIES)
    query = select(
        func.count(),
        func.count().filter(jobs.c.due_at <= now),
        func.count().filter(late),
    ).select_from(jobs)
    total, due, overdue = (await tx.connection.execute(query)).one()
    return JobCount(total, due, overdue)


def _free(now: ColumnElement[datetime]) -> ColumnElement[bool]:
    lapsed = or_(jobs.c.leased_until.is_(None), jobs.c.leased_until <= now)
    return (jobs.c.due_at <= now) & lapsed


def _job(tx: Transaction, row: Any) -> Job:  # noqa: ANN401 - a row of a RETURNING clause
    genuine = row.kind in seals.SHOWING_KINDS or seals.is_genuine(tx, jobs, row)
    return Job(
        row.key, row.kind, row.subject, row.due_at, row.payload, row.generation, row.tries, genuine
    )
