"""Checks the database, and compares this machine's clock with Slack's clock.

The bot reads the clock at startup and then counts elapsed time, so a clock that is temporarily
wrong doesn't end access early. The bot adopts the machine's time as soon as that is nearer to
Slack's: if the clock was wrong at startup, or stopped while the machine was suspended.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from tempfile import TemporaryDirectory

import structlog
from pydantic import SecretStr

from bot.checks.parts import CheckParts
from bot.checks.rules import Finding, Part, failed, well
from bot.errors import DatabaseReplaced, DatabaseTooNew, DatabaseTooOld, DatabaseUnavailable
from bot.migrations import is_current, migrate, notice_newer, revision
from bot.ops.clock import SystemClock, machine_offset, since_boot
from bot.settings import Settings
from bot.store.causes import NO_FILE, cause_of
from bot.store.engine import Database
from bot.store.sqlite import is_locked, sqlite_file

log = structlog.get_logger(__name__)

# Warn early: if the clocks differ by five minutes, the bot refuses every request from Slack.
WRONG_SECONDS = 60.0
# Smaller steps are ordinary clock adjustments, or delays between readings.
LEAST_STEP_SECONDS = 1.0


@contextmanager
def usable_database(settings: Settings) -> Iterator[tuple[Settings, list[Finding]]]:
    """Yield settings with which the checks create no database file, and the problems with the file.

    If the SQLite file doesn't exist yet, the checks use a temporary one: the first start creates
    the file, as the bot's user.
    """
    file = sqlite_file(settings.database_url.get_secret_value())
    if file is None or file.exists():
        yield settings, []
        return
    problems = []
    if is_locked(file):
        problems.append(failed(Part.DATABASE, DatabaseReplaced()))
    elif not os.access(file.parent, os.W_OK | os.X_OK):
        problems.append(Finding(Part.DATABASE, NO_FILE.code, NO_FILE.sentence))
    with TemporaryDirectory() as folder:
        url = SecretStr(f"sqlite:///{folder}/check.db")
        yield settings.model_copy(update={"database_url": url}), problems


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
    try:
        if database.is_proven:
            # The job loop checks the same every second.
            return [_well(database)]
        if await notice_newer(database):
            return [failed(Part.DATABASE, DatabaseTooNew())]
        if not await is_current(database) and await revision(database) is not None:
            sentence = (
                "The database has an older schema. When Gatehouse starts next, it will upgrade the"
                " database."
            )
            return [Finding(Part.DATABASE, "database_outdated", sentence)]
        await database.ping_writing()
    except (DatabaseTooOld, DatabaseReplaced) as error:
        return [failed(Part.DATABASE, error)]
    except DatabaseUnavailable as error:
        return [_failure(error)]
    return [_well(database)]


def _well(database: Database) -> Finding:
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    return well(Part.DATABASE, f"The {kind} database is reachable, up to date and writable.")


def slack_clock(parts: CheckParts, date: str) -> list[Finding]:
    """Compare this machine's clock with the `Date` header of a response from Slack."""
    clock = parts.clock
    if not date or not isinstance(clock, SystemClock):
        return []
    try:
        reported = parsedate_to_datetime(date)
    except ValueError:
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
