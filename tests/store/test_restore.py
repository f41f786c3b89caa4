"""The backups and restores of docs/operations.md, as they are written there."""

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from bot.model.audit import AuditEntry
from bot.ops.clock import SystemClock
from bot.store.audit import AuditStore
from bot.store.engine import Database
from tests.support.postgres import find_program, own_database, server_url

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text("utf-8")


async def act(url: str, number: int) -> str:
    """Write so many entries; return the head."""
    database = Database(url, SystemClock())
    audit = AuditStore(b"key")
    for _ in range(number):
        async with database.transaction() as tx:
            await audit.append(tx, AuditEntry("U0ADMIN", "plan.set", "x"))
            _, head = await audit.head(tx)
    await database.close()
    return head


async def entries(url: str, head: str) -> tuple[bool, int]:
    """Whether the audit holds with a head noted before, and how long it is."""
    database = Database(url, SystemClock())
    try:
        async with database.read_only() as tx:
            verdict = await AuditStore(b"key").verify(tx, head)
        return verdict.is_intact, verdict.entries
    finally:
        await database.close()


async def shell(command: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_shell(command, cwd=folder)
    assert await process.wait() == 0, command


def documented(start: str) -> str:
    """The line of the page that begins so, without its indentation."""
    (line,) = set(re.findall(rf"^ *({re.escape(start)}.*)$", PAGE, re.MULTILINE))
    return line


async def test_sqlite_is_restored_in_spite_of_the_log_that_a_crash_left(sqlite_url, tmp_path):
    head = await act(sqlite_url, 3)
    file = tmp_path / "gatehouse.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"VACUUM INTO '{tmp_path}/copy-2026-11-20-0300.db'")
    connection.close()
    # Somebody who holds the file open keeps the log from being folded in, as a crash does.
    holder = sqlite3.connect(file)
    holder.execute("SELECT * FROM audit_head").fetchall()
    await act(sqlite_url, 5)
    log = (tmp_path / "gatehouse.db-wal").read_bytes()
    shm = (tmp_path / "gatehouse.db-shm").read_bytes()
    holder.close()
    (tmp_path / "gatehouse.db-wal").write_bytes(log)
    (tmp_path / "gatehouse.db-shm").write_bytes(shm)
    assert len(log) > 0
    await shell(documented("mkdir broken && mv gatehouse.db"), tmp_path)
    await shell(documented("cp copy-2026"), tmp_path)
    assert await entries(sqlite_url, head) == (True, 3)


@pytest.mark.postgres
async def test_postgres_is_restored_into_a_new_database(postgres_url, tmp_path):
    head = await act(postgres_url, 3)
    dump, restore = find_program("pg_dump"), find_program("pg_restore")
    if not dump or not restore:
        pytest.skip("pg_dump and pg_restore are not installed")
    await shell(f"{dump} --format=custom '{postgres_url}' > gatehouse.dump", tmp_path)
    await act(postgres_url, 2)
    command = documented("pg_restore --exit-on-error").replace("pg_restore", restore, 1)
    async with own_database(server_url(), is_durable=False) as new_url:
        await shell(command.replace("gatehouse_restored", f"'{new_url}'"), tmp_path)
        assert await entries(new_url, head) == (True, 3)
    assert await entries(postgres_url, head) == (True, 5)
