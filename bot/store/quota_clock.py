"""What becomes of the ledger when the clock that it is written by is set.

A call that is held is held until a time. Where the clock is set forward, that comes too soon, and
set back, too late: then nothing is granted, perhaps for a day.
"""

from typing import Any

from sqlalchemy import BigInteger, Update, bindparam, case, select, type_coerce, update

from bot.model.quotas.quota import SLOT_SECONDS, Terms
from bot.store.engine import Transaction
from bot.store.tables import jobs
from bot.store.tables import machine_clocks as clocks
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

# Of what is counted in microseconds, and of two readings of one clock.
LEAST_STEP_SECONDS = 0.01
PROBE_JOB = "probe"


async def follow(tx: Transaction, boot: str, offset: float) -> float:
    """Set the ledger of a database without a clock of its own to this process's clock.

    `offset` is the clock's time less the time since `boot`: another one than the last process had
    in the same boot says by how much the clock was set since. Returns that, in seconds.
    """
    known = clocks.c.boot == boot
    before = (await tx.connection.execute(clocks.select().where(known))).first()
    step = 0.0 if before is None else offset - before.offset
    if abs(step) < LEAST_STEP_SECONDS:
        step = 0.0
    await move(tx, boot, offset, step)
    return step


async def move(tx: Transaction, boot: str, offset: float, step: float) -> None:
    """Note by which clock the ledger is written from now on, which is `step` seconds ahead.

    What is held and paused lasts as long as before: calls, blocks with their probes, and leases.
    """
    await tx.connection.execute(clocks.delete())
    await tx.connection.execute(clocks.insert().values(boot=boot, offset=offset))
    if not step:
        return
    by = bindparam("step", step, type_=EpochSeconds)
    held = (calls.c.reserved_at, calls.c.slot_free_at, calls.c.permit_until)
    await tx.connection.execute(update(calls).values({one: one + by for one in held}))
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
    names = ("probing_until", "muted_until", "watched_at", "reported_resets_at", "lowered_until")
    for column in (organizations.c[name] for name in names):
        moved = update(organizations).where(column > 0.0).values({column: column + by})
        await tx.connection.execute(moved)
    query = select(organizations.c.id, organizations.c.blocks)
    for row in (await tx.connection.execute(query)).all():
        if row.blocks:
            blocks = [
                {**one, "since": one["since"] + step, "until": one["until"] + step}
                for one in row.blocks
            ]
            its = organizations.c.id == row.id
            await tx.connection.execute(update(organizations).where(its).values(blocks=blocks))


def longest_hold(terms: Terms) -> float:
    """The seconds that a call can hold its slot from now on, at the most."""
    return terms.hold_seconds + SLOT_SECONDS


async def shorten_holds(tx: Transaction, organization: int, terms: Terms) -> None:
    """Hold no call for longer than one that begins now: the clock was set back."""
    its = {"its_organization": organization, "hold": terms.hold_seconds}
    its |= {"longest": longest_hold(terms), **tx.clock_parameters}
    await tx.connection.execute(_shortening(tx), its)


def _shortening(tx: Transaction) -> Update:
    def until(seconds: str) -> Any:  # noqa: ANN401 - an expression
        return tx.clock + bindparam(seconds, type_=EpochSeconds)

    permit = case((calls.c.permit_until > until("hold"), until("hold")), else_=calls.c.permit_until)
    return (
        update(calls)
        .where(calls.c.organization == bindparam("its_organization"))
        .where(calls.c.slot_free_at > until("longest"))
        .values(slot_free_at=until("longest"), permit_until=permit)
    )
