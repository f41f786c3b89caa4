"""Checks the database, and compares this machine's clock with Slack's clock.

The bot reads the clock at startup and then counts elapsed time, so a clock that is temporarily
wrong doesn't end access early. The bot adopts the machine's time as soon as that is nearer to
Slack's: if the clock was wrong at startup, or stopped while the machine was suspended.
"""

import structlog

from bot.checks.parts import CheckParts
from bot.checks.rules import Finding, Part, failed, well
from bot.errors import DatabaseReplaced, DatabaseTooNew, DatabaseTooOld, DatabaseUnavailable
from bot.migrations import is_current, migrate, revision
from bot.ops.clock import SystemClock, machine_offset, read_date, since_boot
from bot.store.causes import cause_of
from bot.store.engine import Database

log = structlog.get_logger(__name__)

# Warn early: if the clocks differ by five minutes, the bot refuses every request from Slack.
WRONG_SECONDS = 60.0
# Smaller steps are ordinary clock adjustments, or delays between readings.
LEAST_STEP_SECONDS = 1.0


async def prepare(database: Database) -> list[Finding]:
    """Create the tables if the database is empty, as the bot does when it first starts.

    Return a finding if that fails.
    """
    try:
        if await revision(database) is None:
            await migrate(database)
    except DatabaseUnavailable as error:
        return [_failure(error)]
    return []


def _failure(error: DatabaseUnavailable) -> Finding:
    cause = cause_of(error)
    return Finding(Part.DATABASE, cause.code, cause.sentence, cause.explanation)


async def database(parts: CheckParts) -> list[Finding]:
    """Check that the bot can use its database, without changing any data."""
    database = parts.database
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    sentence = f"The {kind} database is reachable, up to date and writable."
    try:
        # The job loop proves the same every second.
        if not database.is_proven:
            if not await is_current(database) and await revision(database) is not None:
                sentence = (
                    "The database has an older schema. When Gatehouse starts next, it will upgrade"
                    " the database."
                )
                return [Finding(Part.DATABASE, "database_outdated", sentence)]
            await database.ping_writing()
    except (DatabaseTooNew, DatabaseTooOld, DatabaseReplaced) as error:
        return [failed(Part.DATABASE, error)]
    except DatabaseUnavailable as error:
        return [_failure(error)]
    return [well(Part.DATABASE, sentence)]


def slack_clock(parts: CheckParts, date: str) -> list[Finding]:
    """Compare this machine's clock with the `Date` header of a response from Slack."""
    clock = parts.clock
    reported = read_date(date)
    if reported is None or not isinstance(clock, SystemClock):
        return []
    offset = machine_offset()
    ahead = offset + since_boot() - reported.timestamp()
    own_ahead = clock.now().timestamp() - reported.timestamp()
    if abs(offset - clock.offset) >= LEAST_STEP_SECONDS and abs(ahead) < abs(own_ahead):
        log.warning("clock.renewed", seconds=round(offset - clock.offset, 3))
        clock.offset = offset
    if abs(ahead) <= WRONG_SECONDS:
        return [well(Part.CLOCK, "agrees with Slack's clock.")]
    side = "ahead of" if ahead > 0 else "behind"
    sentence = (
        f"This machine's clock is {abs(round(ahead))} s {side} Slack's. If the difference is more"
        " than 300 s, Gatehouse refuses every request from Slack. Turn on time synchronization."
    )
    return [Finding(Part.CLOCK, "clock_off", sentence)]
