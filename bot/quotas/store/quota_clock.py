"""Adjusts the ledger when the clock behind its times is set.

Held calls expire at a fixed time. If the clock is set forward, they expire too soon; if it is set
back, they expire too late, and no calls are granted, possibly for a day.
"""

from typing import Any

from sqlalchemy import BigInteger, bindparam, case, select, type_coerce, update

from bot.store import jobs as jobs_store
from bot.store.engine import Transaction
from bot.store.tables import jobs
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

# Ignore differences due to microseconds and to reading a clock twice.
LEAST_STEP_SECONDS = 0.01
PROBE_JOB, TIDY_JOB = "probe", "quota_tidy"
# An organization's times that are adjusted with the clock, unless they are 0 or null.
MOVED = (
    *("probing_until", "muted_until", "watched_at", "reported_resets_at"),
    *("lowered_until", "lowered_minute_until"),
)


async def follow(tx: Transaction, boot: str, offset: float) -> float:
    """Adjust the ledger of a database without its own clock to this process's clock.

    `offset` is the clock's time minus the time since `boot`. If `offset` differs from the last
    process's offset since the same boot, the clock was set by the difference, which is returned in
    seconds.
    """
    last = await jobs_store.payload_of(tx, TIDY_JOB)
    step = offset - last["offset"] if last.get("boot") == boot else 0.0
    if abs(step) < LEAST_STEP_SECONDS:
        step = 0.0
    await move(tx, boot, offset, step)
    return step


async def move(tx: Transaction, boot: str, offset: float, step: float) -> None:
    """Adjust the ledger to a clock that is `step` seconds ahead of the old clock.

    Calls, blocks with their probes, and leases keep their remaining time. The clock is recorded in
    the payload of the hourly job.
    """
    recorded = update(jobs).where(jobs.c.key == TIDY_JOB)
    await tx.connection.execute(recorded.values(payload={"boot": boot, "offset": offset}))
    if not step:
        return
    by = bindparam("step", step, type_=EpochSeconds)
    held = (calls.c.slot_free_at, calls.c.permit_until)
    # Calls that were never sent hold no slot and keep their mark (`UNSENT`).
    moved: dict[Any, Any] = {
        column: case((calls.c.slot_free_at > 0.0, column + by), else_=column) for column in held
    }
    moved[calls.c.reserved_at] = calls.c.reserved_at + by
    await tx.connection.execute(update(calls).values(moved))
    await _move_blocks(tx, step)
    microseconds = round(step * 1_000_000)
    for column, which in (
        (jobs.c.leased_until, jobs.c.leased_until.is_not(None)),
        (jobs.c.due_at, jobs.c.kind == PROBE_JOB),
    ):
        later = type_coerce(column, BigInteger) + microseconds
        await tx.connection.execute(update(jobs).where(which).values({column: later}))


async def _move_blocks(tx: Transaction, step: float) -> None:
    by = bindparam("step", step, type_=EpochSeconds)
    for name in MOVED:
        column = organizations.c[name]
        moved = update(organizations).where(column > 0.0).values({column: column + by})
        await tx.connection.execute(moved)
    query = select(organizations.c.id, organizations.c.blocks)
    for row in (await tx.connection.execute(query)).all():
        if row.blocks:
            blocks = [
                {**block, "since": block["since"] + step, "until": block["until"] + step}
                for block in row.blocks
            ]
            its = organizations.c.id == row.id
            await tx.connection.execute(update(organizations).where(its).values(blocks=blocks))
