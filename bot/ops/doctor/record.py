"""The audit and the database's clock: is the key the chain's, and do the clocks agree."""

from datetime import datetime, timedelta

from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.ops.doctor.database import why
from bot.ops.doctor.findings import Finding, well
from bot.store.audit import AuditStore
from bot.store.engine import Database

MOST_DIFFERENCE = timedelta(seconds=5)
WRONG_KEY = (
    "The newest entry was not written with this AUDIT_KEY. Set the key that the chain was begun"
    " with, before anything more is written with another."
)
NO_KEY = (
    "The newest entry was written with an AUDIT_KEY, and none is set. Set it, before anything more"
    " is written without."
)
UNEXPECTED_KEY = (
    "AUDIT_KEY is set, and the newest entry was written without one. See the runbook on AUDIT_KEY."
)


async def examine_record(database: Database, key: bytes | None, clock: Clock) -> list[Finding]:
    """Compare the end of the audit with the key, and the database's clock with this machine's."""
    try:
        async with database.read_only() as tx:
            holds = await AuditStore(key).holds_newest(tx)
            plain = await AuditStore(None).holds_newest(tx)
            database_time = await tx.now()
    except DatabaseUnavailable as error:
        return [why(error)]
    return [
        _key(holds=holds, plain=plain, has_key=key is not None),
        *([] if database.is_sqlite else [_clocks(clock.now(), database_time)]),
    ]


def _key(*, holds: bool, plain: bool, has_key: bool) -> Finding:
    if holds:
        return well("audit", f"The newest entry holds{'' if has_key else ', without a key'}.")
    if not has_key:
        return Finding("audit", "audit_key_wrong", NO_KEY)
    return Finding("audit", "audit_key_wrong", UNEXPECTED_KEY if plain else WRONG_KEY)


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
