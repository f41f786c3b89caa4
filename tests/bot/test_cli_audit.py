"""`gatehouse audit verify` says whether the audit log is intact, or why it can't be verified."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from bot.__main__ import main
from bot.audit.reading import verify_audit
from bot.ops.clock import SystemClock
from bot.settings import Settings
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database
from tests.support.settings import LEAST, read_settings


def settings(url: str, **more: str) -> Settings:
    return read_settings({**LEAST, "DATABASE_URL": url, **more})


@pytest.fixture
async def chain(sqlite_url):
    """Yield a database with four audit entries."""
    database = Database(sqlite_url, SystemClock())
    try:
        for number in range(4):
            async with database.transaction() as tx:
                await audit.append(tx, AuditEntry("U1", f"act.{number}", "r"))
        yield database
    finally:
        await database.close()


async def head_of(database) -> tuple[int, str]:
    async with database.read_only() as tx:
        return await audit.head(tx)


async def test_an_intact_chain_is_said_with_its_head(chain, sqlite_url, capsys):
    assert await verify_audit(settings(sqlite_url), None) == 0
    said = capsys.readouterr().out
    assert f"intact: 4 entries, head {(await head_of(chain))[1]}." in said
    assert "--head" in said


@pytest.mark.parametrize("words", ["deadbeef", "", "0" * 63, "0" * 65, f"{'0' * 63}g", "#12"])
def test_what_is_no_hash_is_not_called_damage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["audit", "verify", "--head", words])
    assert ended.value.code == 2
    assert "is not a hash of 64 hexadecimal digits" in capsys.readouterr().err


async def test_a_database_that_is_away_is_no_verdict(capsys):
    assert await verify_audit(settings("postgresql://u:p@127.0.0.1:1/none"), None) == 2
    assert "can't reach its database" in capsys.readouterr().out


async def test_a_file_that_is_not_there_is_said_and_not_made(tmp_path, capsys):
    path = tmp_path / "wrong.db"
    assert await verify_audit(settings(f"sqlite:///{path}"), None) == 2
    said = capsys.readouterr().out
    assert said == f"No database file exists at {path}. Check DATABASE_URL.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unused_url(empty_database_url) -> str:
    """Return the address of an empty database."""
    address = make_url(empty_database_url)
    if address.get_backend_name() == "sqlite":
        Path(address.database).touch()
    return empty_database_url


async def test_a_database_that_was_never_used_is_said(unused_url, capsys):
    assert await verify_audit(settings(unused_url), None) == 2
    assert "has never used this database" in capsys.readouterr().out
