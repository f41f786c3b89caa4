"""The commands `gatehouse backup FILE` and `gatehouse restore FILE`.

A backup contains all rows of a database in gzipped JSON Lines format: a header, each row with its
table's name, and a trailer with the number of rows and the audit log's head. You can restore it to
SQLite or PostgreSQL.
"""

import gzip
import json
import os
from collections import deque
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Connection, MetaData, Table, text

from bot import __version__
from bot.errors import DatabaseInUse, DatabaseUnavailable
from bot.ops.clock import SystemClock
from bot.store import audit, migrations, tables
from bot.store.audit_entry import Verdict
from bot.store.causes import cause_of
from bot.store.engine import Database, Transaction, process_lock, sqlite_file

FORM = 1
PORTION = 500
BROKEN, UNUSABLE = 1, 2
# Hosted databases have connections of their own users. The bot's user owns the tables.
OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND usename IN (current_user, :owner)"
)
OWNER = text(
    "SELECT coalesce((SELECT tableowner FROM pg_tables WHERE tablename = 'audit_head'"
    " AND schemaname = current_schema()), (SELECT pg_get_userbyid(datdba) FROM pg_database"
    " WHERE datname = current_database()))"
)
OWN_TABLES = text(
    "SELECT tablename FROM pg_tables"
    " WHERE schemaname = current_schema() AND tableowner = current_user"
)
NOT_THIS_VERSION = (
    "This database wasn't written by this version of Gatehouse. Back it up with the version that"
    " wrote it."
)


class BackupError(Exception):
    """A backup or restore failed. The message says why."""


FAILURES = (BackupError, DatabaseUnavailable, OSError)


async def back_up(url: str, path: Path) -> int:
    """Write a snapshot of all rows to a new file, and return the exit status."""
    database, part = Database(url, SystemClock()), path.with_name(f"{path.name}.part")
    try:
        if database.is_absent:
            raise BackupError(f"No database file exists at {database.file}. Check DATABASE_URL.")
        if path.exists():
            raise BackupError(f"{path} already exists. Choose a new file name.")
        async with database.read_only() as tx:
            revision = await tx.connection.run_sync(migrations.revision_of)
            if revision != migrations.known_revisions()[-1]:
                raise BackupError(NOT_THIS_VERSION)
            head = {"gatehouse_backup": FORM, "version": __version__, "revision": revision}
            head["at"] = (await tx.now()).isoformat()
            verdict = await audit.verify(tx)
            end = {"head": verdict.head, "is_intact": verdict.is_intact}
            rows = await tx.connection.run_sync(_write, part, head, end)
        part.rename(path)
    except FAILURES as error:
        print(_reason(error))
        return UNUSABLE
    finally:
        part.unlink(missing_ok=True)
        await database.close()
    print(f"Backed up {rows} rows to {path}. {verdict}")
    return 0 if verdict.is_intact else BROKEN


def _write(connection: Connection, path: Path, head: dict[str, Any], end: dict[str, Any]) -> int:
    rows = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as raw, gzip.open(raw, "wt", encoding="ascii") as file:
        file.write(json.dumps(head) + "\n")
        for table in _stored_tables(connection):
            query = table.select().execution_options(yield_per=PORTION)
            for row in connection.execute(query).mappings():
                file.write(json.dumps([table.name, dict(row)]) + "\n")
                rows += 1
        file.write(json.dumps({"rows": rows, **end}) + "\n")
        file.flush()
        os.fsync(raw.fileno())
    return rows


async def restore(url: str, path: Path) -> int:
    """Replace the database's contents with the backup's rows, and return the exit status."""
    try:
        head, end = _examine(path)
        with process_lock(url):
            if file := sqlite_file(url):
                verdict = await _restore_file(file, path, end)
            else:
                verdict = await _restore_server(url, path, end)
    except FAILURES as error:
        print(_reason(error))
        return UNUSABLE
    print(f"Restored {end['rows']} rows from {path}, created at {head['at']}. {verdict}")
    print("To stay within the per-minute limits, wait a minute before you start Gatehouse.")
    return 0 if verdict.is_intact else BROKEN


async def _restore_file(file: Path, path: Path, end: dict[str, Any]) -> Verdict:
    """Build a new database file that has the same owner as the old one, and move it into place."""
    file = file.resolve()
    owner = (file if file.exists() else file.parent).stat()
    new = file.with_name(f"{file.name}.restoring")
    new.unlink(missing_ok=True)
    database = Database(f"sqlite:///{new}", SystemClock())
    try:
        async with database.migrating() as tx:
            verdict = await _fill(tx, path, end)
        await database.close()
        new.chmod(0o600)
        # The lock file might also be new.
        for made in (new, file.with_name(f"{file.name}.lock")):
            os.chown(made, owner.st_uid, owner.st_gid)
        for ending in ("", "-wal", "-shm"):
            present = file.with_name(f"{file.name}{ending}")
            if present.exists():
                present.rename(file.with_name(f"{file.name}.old{ending}"))
        new.rename(file)
    finally:
        await database.close()
        new.unlink(missing_ok=True)
    return verdict


async def _restore_server(url: str, path: Path, end: dict[str, Any]) -> Verdict:
    """Replace the tables in one transaction, acting as the role that owns them."""
    database = Database(url, SystemClock())
    try:
        async with database.migrating() as tx:
            owner = await tx.connection.scalar(OWNER)
            count = int(await tx.connection.scalar(OTHERS, {"owner": owner}) or 0)
            if count:
                raise BackupError(
                    f"Gatehouse's database user has {count} other open connections. Stop all"
                    " Gatehouse processes (and the connection pooler, if any), and try again."
                )
            role = owner.replace('"', '""')
            await tx.connection.exec_driver_sql(f'SET LOCAL ROLE "{role}"')
            await tx.connection.run_sync(_drop_tables)
            return await _fill(tx, path, end)
    finally:
        await database.close()


async def _fill(tx: Transaction, path: Path, end: dict[str, Any]) -> Verdict:
    """Create the tables, insert the file's rows and verify the audit log."""
    await tx.connection.run_sync(_insert, path)
    verdict = await audit.verify(tx)
    if verdict.is_intact != end["is_intact"] or verdict.head != end["head"]:
        raise BackupError(f"Nothing was restored, because the backup file was modified. {verdict}")
    return verdict


def _insert(connection: Connection, path: Path) -> None:
    migrations.upgrade(connection)
    by_name = {table.name: table for table in _stored_tables(connection)}
    for table in by_name.values():
        connection.execute(table.delete())
    rows = (line for line in _lines(path) if isinstance(line, list))
    for name, lines in groupby(rows, itemgetter(0)):
        while values := [row for _, row in islice(lines, PORTION)]:
            connection.execute(by_name[name].insert(), values)
    if connection.dialect.name == "postgresql":
        # Make each sequence continue after the restored rows.
        for table in by_name.values():
            for column in table.primary_key:
                if column.server_default is not None:
                    names = {"table": table.name, "column": column.name}
                    sequence = "pg_get_serial_sequence(:table, :column)"
                    query = f'SELECT setval({sequence}, max("{column.name}"))'
                    connection.execute(text(f'{query} FROM "{table.name}"'), names)


def _drop_tables(connection: Connection) -> None:
    names = set(connection.scalars(OWN_TABLES))
    present = MetaData()
    present.reflect(connection, only=lambda name, _: name in names)
    present.drop_all(connection)


def _stored_tables(connection: Connection) -> list[Table]:
    present = MetaData()
    present.reflect(connection, only=lambda name, _: name in tables.metadata.tables)
    for table in present.sorted_tables:
        for column in table.c:
            if isinstance(column.type, JSON):
                column.type = JSON(none_as_null=True)
    return present.sorted_tables


def _examine(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the whole file before anything is changed. Return the header and the trailer."""
    lines = _lines(path)
    head, last = next(lines, None), deque(enumerate(lines), maxlen=1)
    rows, end = last[0] if last else (0, None)
    if not isinstance(head, dict) or head.get("gatehouse_backup") != FORM:
        raise BackupError(f"{path} is not a Gatehouse backup.")
    if not isinstance(end, dict) or end.get("rows") != rows:
        raise BackupError(f"{path} is damaged: the end of the file is missing.")
    if head["revision"] != migrations.known_revisions()[-1]:
        raise BackupError(
            f"{path} was made by another version of Gatehouse ({head['version']})."
            " Restore it with that version."
        )
    return head, end


def _lines(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            yield from map(json.loads, file)
    except (gzip.BadGzipFile, EOFError, ValueError) as error:
        raise BackupError(f"{path} is damaged, or is not a Gatehouse backup.") from error


def _reason(error: Exception) -> str:
    match error:
        case BackupError():
            return str(error)
        case DatabaseInUse():
            return error.sentence
        case DatabaseUnavailable():
            return f"{error.sentence} {cause_of(error).sentence}"
    return f"{getattr(error, 'filename', None) or 'The file'}: {getattr(error, 'strerror', error)}"
