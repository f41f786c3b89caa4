"""`gatehouse backup` and `gatehouse restore`, on both databases and from one to the other."""

import asyncio
import gzip
import os
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from bot.backup import back_up, restore
from bot.ops.clock import SystemClock
from bot.store import audit, outbox
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, process_lock
from bot.store.migrations import migrate
from bot.store.outbox import OutboxMessage
from bot.store.tables import audit_entries, outbox_messages
from tests.support import revision_0015
from tests.support.needs import ROOT_USER, lacks
from tests.support.postgres import connect
from tests.support.settings import LEAST


@pytest.fixture(params=[("sqlite", "empty_postgres"), ("postgres", "empty_sqlite")])
def two_urls(request) -> list[str]:
    """A database, and an empty one of the other kind."""
    return [request.getfixturevalue(f"{kind}_url") for kind in request.param]


async def work(url: str, number: int) -> None:
    """Write so many entries and messages."""
    database = Database(url, SystemClock())
    for _ in range(number):
        async with database.transaction() as tx:
            await audit.append(tx, AuditEntry("U1", "plan.set", "é 株", {"x": None}))
            await outbox.put(tx, OutboxMessage("key", "kind", "subject", {"half": "\ud800"}))
    await database.close()


async def state(url: str) -> tuple[bool, int, int]:
    """Return whether the audit is intact, and how many entries and messages there are."""
    database = Database(url, SystemClock())
    async with database.read_only() as tx:
        verdict = await audit.verify(tx)
        messages = await tx.connection.scalar(select(func.count()).select_from(outbox_messages))
    await database.close()
    return verdict.is_intact, verdict.entries, messages


async def restore_soon(url: str, path: Path) -> int:
    """Restore once the closed connections have ended, which PostgreSQL does a moment later."""
    codes = [await restore(url, path)]
    while codes[-1] == 2 and len(codes) < 100:
        codes.append(await restore(url, path))
    return codes[-1]


async def test_restored_database_is_that_of_the_backup(database_url, tmp_path, capsys):
    await work(database_url, 3)
    path = tmp_path / "saved"
    assert await back_up(database_url, path) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await work(database_url, 2)
    assert await restore(database_url, path) == 0
    assert await state(database_url) == (True, 3, 3)
    await work(database_url, 1)
    assert await state(database_url) == (True, 4, 4)
    assert "The audit log is intact: 3 entries" in capsys.readouterr().out


@pytest.mark.postgres
async def test_backup_is_restored_into_another_database(two_urls, tmp_path):
    url, other_url = two_urls
    await work(url, 3)
    assert await back_up(url, tmp_path / "saved") == 0
    assert await restore(other_url, tmp_path / "saved") == 0
    assert await state(other_url) == (True, 3, 3)


async def test_database_of_another_version_is_not_backed_up(empty_sqlite_url, tmp_path, capsys):
    await revision_0015.write(empty_sqlite_url)
    assert await back_up(empty_sqlite_url, tmp_path / "saved") == 2
    assert not (tmp_path / "saved").exists()
    assert "with the version that wrote it" in capsys.readouterr().out


async def test_file_that_exists_is_not_written_over(sqlite_url, tmp_path, capsys):
    (tmp_path / "saved").write_text("mine")
    assert await back_up(sqlite_url, tmp_path / "saved") == 2
    assert (tmp_path / "saved").read_text() == "mine"
    assert "exists" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "edited", "away"])
async def test_damaged_backup_changes_nothing(sqlite_url, tmp_path, damage, capsys):
    await work(sqlite_url, 3)
    path = tmp_path / "saved"
    await back_up(sqlite_url, path)
    content = path.read_bytes()
    if damage == "edited":
        told = gzip.decompress(content).replace(b"plan.set", b"plan.get")
        path.write_bytes(gzip.compress(told))
    else:
        path.write_bytes({"cut": content[:-20], "text": b"no backup"}.get(damage, b""))
    if damage == "away":
        path.unlink()
    await work(sqlite_url, 1)
    assert await restore(sqlite_url, path) == 2
    assert await state(sqlite_url) == (True, 4, 4)
    assert str(path) in capsys.readouterr().out or damage == "edited"


async def test_audit_that_was_broken_is_told_and_restored_as_it_was(database, tmp_path, capsys):
    await work(database.url, 3)
    async with database.transaction() as tx:
        await tx.connection.execute(
            update(audit_entries).where(audit_entries.c.position == 2).values(actor="U2")
        )
    await database.close()
    assert await back_up(database.url, tmp_path / "saved") == 1
    assert await restore(database.url, tmp_path / "saved") == 1
    assert capsys.readouterr().out.count("The audit log is broken at entry 2") == 2


async def test_restore_is_refused_while_a_process_uses_the_database(database_url, tmp_path, capsys):
    await work(database_url, 1)
    await back_up(database_url, tmp_path / "saved")
    database = Database(database_url, SystemClock())
    with process_lock(database_url):
        await database.now()
        assert await restore(database_url, tmp_path / "saved") == 2
        assert "Stop" in capsys.readouterr().out
        await database.close()
    assert await restore_soon(database_url, tmp_path / "saved") == 0


async def test_sqlite_file_keeps_its_owner_and_the_old_one_is_kept(sqlite_url, tmp_path):
    if os.geteuid() != 0:
        lacks(ROOT_USER)
    file = tmp_path / "gatehouse.db"
    await work(sqlite_url, 1)
    await back_up(sqlite_url, tmp_path / "saved")
    os.chown(file, 61184, 61184)
    assert await restore(sqlite_url, tmp_path / "saved") == 0
    for path in (file, tmp_path / "gatehouse.db.lock"):
        assert (path.stat().st_uid, path.stat().st_gid) == (61184, 61184)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await state(f"sqlite:///{file}.old") == (True, 1, 1)


async def test_log_that_a_crash_left_is_not_replayed_over_the_restored_file(sqlite_url, tmp_path):
    await work(sqlite_url, 1)
    await back_up(sqlite_url, tmp_path / "saved")
    script = "import os, sqlite3; c = sqlite3.connect(__import__('sys').argv[1]);"
    script += "c.execute('DELETE FROM audit_entries'); c.commit(); os._exit(0)"
    crashed = [sys.executable, "-c", script, tmp_path / "gatehouse.db"]
    await asyncio.to_thread(subprocess.run, crashed, check=True)
    assert (tmp_path / "gatehouse.db-wal").stat().st_size > 0
    assert await restore(sqlite_url, tmp_path / "saved") == 0
    assert await state(sqlite_url) == (True, 1, 1)


@pytest.mark.postgres
async def test_tables_restored_by_an_administrator_keep_their_owner(
    empty_postgres_url, tmp_path, capsys
):
    name, role = empty_postgres_url.rsplit("/", 1)[1], f"role_{uuid.uuid4().hex[:8]}"
    admin = await connect(empty_postgres_url)
    await admin.execute(f'CREATE ROLE "{role}" LOGIN')
    await admin.execute(f'ALTER DATABASE "{name}" OWNER TO "{role}"')
    await admin.close()
    url = empty_postgres_url.replace("postgres@", f"{role}@")
    database = Database(url, SystemClock())
    await migrate(database)
    await work(url, 2)
    assert await back_up(url, tmp_path / "saved") == 0
    await database.now()
    assert await restore(empty_postgres_url, tmp_path / "saved") == 2
    await database.close()
    assert await restore_soon(empty_postgres_url, tmp_path / "saved") == 0
    assert "Gatehouse's database user has" in capsys.readouterr().out
    assert await state(url) == (True, 2, 2)
    await work(url, 1)
    admin = await connect(empty_postgres_url)
    # Other users of a hosted database may stay connected.
    assert await restore_soon(url, tmp_path / "saved") == 0
    await admin.execute(f'REASSIGN OWNED BY "{role}" TO postgres')
    await admin.execute(f'DROP OWNED BY "{role}"')
    await admin.execute(f'DROP ROLE "{role}"')
    await admin.close()


async def test_reader_of_the_export_may_stop(sqlite_url):
    await work(sqlite_url, 300)
    environment = {**os.environ, **LEAST, "DATABASE_URL": sqlite_url}
    program = f"{sys.executable} -m bot audit export | head -1"
    ended = await asyncio.create_subprocess_shell(
        program, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, told = await ended.communicate()
    assert (printed.count(b"\n"), told) == (1, b"")
