"""`python -m bot audit verify`: check the chain, beside a running bot too."""

from bot.clock import SystemClock
from bot.errors import DatabaseUnavailable
from bot.model.audit import Verdict
from bot.settings import Settings
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.store.migrations import revision
from bot.workflows.audit import AuditReading

PLAIN = (
    "Without AUDIT_KEY this shows damage, not forgery: who can write the database "
    "could have written the whole chain anew."
)


async def verify_audit(settings: Settings, noted_head: str | None) -> int:
    """Print what was found; return 0 when all holds, 1 when not, 2 when there is none to read."""
    key = settings.audit_key_bytes
    audit = AuditStore(key)
    database = Database(settings.database_url.get_secret_value(), SystemClock())
    try:
        if missing := await _missing(database):
            print(missing)
            return 2
        verdict = await AuditReading(database, audit).verify(noted_head)
    except DatabaseUnavailable as error:
        print(error.sentence)
        return 2
    finally:
        await database.close()
    print(_told(verdict))
    if key is None:
        print(PLAIN)
    elif noted_head is None:
        print("A cut tail shows only against a head noted earlier: --head HASH.")
    return 0 if verdict.is_intact else 1


async def _missing(database: Database) -> str:
    """Say why there is no audit to check, or nothing; no file is made by looking.

    Raises:
        DatabaseUnavailable: It cannot be reached.
    """
    if database.is_absent:
        return f"There is no database file {database.url.database}. Check DATABASE_URL."
    if await revision(database) is None:
        return "This database was never used by Gatehouse: it has none of its tables."
    return ""


def _told(verdict: Verdict) -> str:
    if verdict.is_intact:
        return f"The audit is intact: {verdict.entries} entries, head {verdict.head}."
    where = "" if verdict.broken_at is None else f" at entry {verdict.broken_at}"
    return f"The audit is broken{where}: {verdict.reason}."
