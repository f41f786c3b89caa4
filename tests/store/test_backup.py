"""`gatehouse backup` copies a SQLite database while the bot is running."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bot.backup import back_up
from bot.ops.clock import SystemClock
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database
from tests.support.needs import ROOT_USER, lacks, needs
from tests.support.settings import LEAST


async def work(database: Database, number: int) -> None:
    """Write `number` audit entries."""
    for _ in range(number):
        async with database.transaction() as tx:
            await audit.append(tx, AuditEntry("U1", "plan.set", "é 株", {"x": None}))


async def entries(url: str) -> int:
    """Check that the audit log is intact, and return the number of entries."""
    database = Database(url, SystemClock())
    async with database.read_only() as tx:
        verdict = await audit.verify(tx)
    await database.close()
    assert verdict.is_intact
    return verdict.entries


async def test_backup_beside_a_writer_is_one_complete_file(sqlite_url, tmp_path, capsys):
    database, folder = Database(sqlite_url, SystemClock()), tmp_path / "backups"
    folder.mkdir()
    await work(database, 3)
    async with database.transaction() as tx:
        await audit.append(tx, AuditEntry("U1", "plan.set", "not committed", {}))
        assert await asyncio.to_thread(back_up, sqlite_url, folder / "backup.db") == 0
    await database.close()
    assert [path.name for path in folder.iterdir()] == ["backup.db"]
    assert stat.S_IMODE((folder / "backup.db").stat().st_mode) == 0o600
    assert str(folder / "backup.db") in capsys.readouterr().out
    assert await entries(f"sqlite:///{folder}/backup.db") == 3
    assert await entries(sqlite_url) == 4


def test_backup_has_what_a_killed_bot_had_committed(sqlite_url, tmp_path):
    file = sqlite_url.removeprefix("sqlite:///")
    script = "import os, sqlite3; c = sqlite3.connect(__import__('sys').argv[1]);"
    script += "c.execute('CREATE TABLE mark (n)'); c.commit(); os._exit(0)"
    subprocess.run([sys.executable, "-c", script, file], check=True)
    assert Path(f"{file}-wal").stat().st_size > 0
    assert back_up(sqlite_url, tmp_path / "backup.db") == 0
    assert sqlite3.connect(tmp_path / "backup.db").execute("SELECT * FROM mark").fetchall() == []


@pytest.mark.parametrize("stands", ["file", "link", "dangling link", "folder"])
def test_a_backup_leaves_existing_files_alone(sqlite_url, tmp_path, stands, capsys):
    target, other = tmp_path / "backup.db", tmp_path / "other"
    if stands == "folder":
        target.mkdir()
    elif stands == "file":
        target.write_text("mine")
    else:
        target.symlink_to(other)
        if stands == "link":
            other.write_text("mine")
    assert back_up(sqlite_url, target) == 2
    assert f"{target} already exists" in capsys.readouterr().err
    if stands in {"file", "link"}:
        assert target.read_text() == "mine"
    assert other.exists() == (stands == "link")


@pytest.mark.parametrize("target", ["missing/backup.db", "file/backup.db", "x" * 300])
def test_target_that_cannot_be_written_is_named(sqlite_url, tmp_path, target, capsys):
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.iterdir())
    assert back_up(sqlite_url, tmp_path / target) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path / target}: ")
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_backup_to_a_full_disk_leaves_nothing(sqlite_url, tmp_path, capsys):
    if os.geteuid() != 0:
        lacks(ROOT_USER)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, unmount = needs("mount"), needs("umount")
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
    try:
        assert back_up(sqlite_url, disk / "backup.db") == 2
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run([unmount, disk], check=True)
    assert capsys.readouterr().err == f"{disk}/backup.db: database or disk is full.\n"


@pytest.mark.parametrize("content", [None, "not a database, but a longer text"])
def test_source_that_is_no_database_is_named(tmp_path, content, capsys):
    source = tmp_path / "source.db"
    if content is not None:
        source.write_text(content)
    assert back_up(f"sqlite:///{source}", tmp_path / "backup.db") == 2
    assert str(source) in capsys.readouterr().err
    assert not (tmp_path / "backup.db").exists()
    assert source.exists() == (content is not None)


def test_backup_of_postgresql_names_its_own_tool(tmp_path, capsys):
    assert back_up("postgresql://gatehouse@127.0.0.1/gatehouse", tmp_path / "backup") == 2
    assert "pg_dump" in capsys.readouterr().err


async def test_reader_of_the_export_may_stop(sqlite_url):
    database = Database(sqlite_url, SystemClock())
    await work(database, 300)
    await database.close()
    environment = {**os.environ, **LEAST, "DATABASE_URL": sqlite_url}
    program = f"{sys.executable} -m bot audit export | head -1"
    ended = await asyncio.create_subprocess_shell(
        program, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, told = await ended.communicate()
    assert (printed.count(b"\n"), told) == (1, b"")
