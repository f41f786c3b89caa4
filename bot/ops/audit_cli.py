"""`python -m bot audit verify | export | rotate-key`."""

import json
import secrets
from collections.abc import Awaitable, Callable, Sequence

from bot.errors import DatabaseInUse, DatabaseUnavailable
from bot.model.audit import RecordedEntry, Verdict
from bot.model.signatures import Seal
from bot.ops.clock import SystemClock
from bot.ops.terminal import on_one_line
from bot.settings import Settings
from bot.settings.secrets import secret_problem
from bot.store import audit_keys, seals
from bot.store.audit import AuditStore
from bot.store.audit_keys import WrongAuditKey
from bot.store.engine import Database
from bot.store.migrations import revision
from bot.store.seals import EditedRow
from bot.store.sqlite import ProcessLock
from bot.workflows.audit import AuditReading

PLAIN = (
    "Without AUDIT_KEY this shows damage, not forgery: who can write the database "
    "could have written the whole chain anew."
)
ROWS_SHOWN = 20
BROKEN, UNUSABLE = 1, 2


async def verify_audit(settings: Settings, noted_head: str | None) -> int:
    """Print what was found; return 0 when all holds, 1 when not, 2 when there is none to read."""

    async def verify(database: Database, audit: AuditStore) -> int:
        verdict = await AuditReading(database, audit).verify(noted_head)
        async with database.read_only() as tx:
            rows = await seals.edited(tx)
        print(_text_of(verdict))
        _print_rows(rows)
        if not audit.has_key:
            print(PLAIN)
        elif noted_head is None:
            print("A cut tail shows only against a head noted earlier: --head HASH.")
        return 0 if verdict.is_intact and not rows else BROKEN

    return await _with_audit(settings, settings.audit_key_bytes, verify)


async def export_audit(settings: Settings, since: int) -> int:
    """Print the entries after a position, each as a line of JSON; return the exit status."""

    async def export(database: Database, audit: AuditStore) -> int:
        position = since
        while True:
            async with database.read_only() as tx:
                entries = await audit.after(tx, position)
            if not entries:
                return 0
            for entry in entries:
                print(_line(entry))
            position = entries[-1].position

    return await _with_audit(settings, settings.audit_key_bytes, export)


async def rotate_audit_key(settings: Settings, new_key: str) -> int:
    """Go on with another key, and print what to set; return the exit status.

    Args:
        settings: With the present `AUDIT_KEY`, if there is one.
        new_key: The next one; "" to have one made.
    """
    problem = secret_problem(new_key) if new_key else None
    if problem:
        print(f"AUDIT_KEY_NEW {problem}")
        return UNUSABLE
    key = new_key or secrets.token_hex(32)
    old_key = settings.audit_key_bytes
    if key.encode() == old_key:
        print("AUDIT_KEY_NEW is the present key.")
        return UNUSABLE
    lock = ProcessLock(settings.database_url.get_secret_value())
    try:
        lock.acquire()
    except DatabaseInUse as error:
        print(error.sentence)
        return UNUSABLE

    async def rotate(database: Database, new: AuditStore) -> int:
        async with database.transaction() as tx:
            count = await audit_keys.rotate(tx, AuditStore(old_key), new, Seal(old_key))
        print(f"The new key counts from now on; {count} waiting rows were signed with it.")
        shown = key if not new_key else "the value of AUDIT_KEY_NEW"
        print(f"Before the next start of any process set AUDIT_KEY to: {shown}")
        return 0

    try:
        return await _with_audit(settings, key.encode(), rotate)
    except WrongAuditKey as error:
        print(error)
        return BROKEN
    finally:
        lock.release()


async def _with_audit(
    settings: Settings,
    key: bytes | None,
    work: Callable[[Database, AuditStore], Awaitable[int]],
) -> int:
    """Do the work on the database of the settings; return its status, or 2 where there is none."""
    url = settings.database_url.get_secret_value()
    database = Database(url, SystemClock(), seal=Seal(key))
    try:
        if missing := await _missing(database):
            print(missing)
            return UNUSABLE
        return await work(database, AuditStore(key))
    except DatabaseUnavailable as error:
        print(error.sentence)
        return UNUSABLE
    finally:
        await database.close()


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


def _text_of(verdict: Verdict) -> str:
    if verdict.is_intact:
        return f"The audit is intact: {verdict.entries} entries, head {verdict.head}."
    where = "" if verdict.broken_at is None else f" at entry {verdict.broken_at}"
    return f"The audit is broken{where}: {verdict.reason}."


def _print_rows(rows: Sequence[EditedRow]) -> None:
    if not rows:
        return
    print(f"Not as Gatehouse wrote it, and stopped: {len(rows)} rows of the database.")
    for row in rows[:ROWS_SHOWN]:
        print(f"  {row.noun} {on_one_line(row.name)}")
    if len(rows) > ROWS_SHOWN:
        print(f"  and {len(rows) - ROWS_SHOWN} more")


def _line(entry: RecordedEntry) -> str:
    """An entry as a line of JSON; `detail` is an object, as far as it can be read."""
    try:
        detail = json.loads(entry.detail)
    except ValueError:
        detail = entry.detail
    fields = {**vars(entry), "at": entry.at.isoformat(), "detail": detail}
    return json.dumps(fields, ensure_ascii=True)
