"""The database's clock against this machine's."""

from datetime import datetime, timedelta

from bot.checks.doctor.database import why
from bot.checks.doctor.findings import Finding, well
from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.store.engine import Database

MOST_DIFFERENCE = timedelta(seconds=5)


async def examine_clocks(database: Database, clock: Clock) -> list[Finding]:
    """Compare the clock of a database server with this machine's."""
    if database.is_sqlite:
        return []
    try:
        async with database.read_only() as tx:
            database_time = await tx.now()
    except DatabaseUnavailable as error:
        return [why(error)]
    return [_clocks(clock.now(), database_time)]


def _clocks(ours: datetime, theirs: datetime) -> Finding:
    difference = ours - theirs
    if abs(difference) <= MOST_DIFFERENCE:
        return well("database clock", "agrees with this machine's.")
    direction = "ahead of" if difference > timedelta(0) else "behind"
    return Finding(
        "database clock",
        "database_clock_off",
        f"This machine's clock is {abs(round(difference.total_seconds()))} s {direction} the"
        " database's, by which requests expire and limits are counted. Synchronise both.",
    )
