"""`gatehouse audit verify` says what holds, what does not, and what it cannot show."""

from pathlib import Path

import pytest
from sqlalchemy import delete, make_url, update

from bot.audit.reading import verify_audit
from bot.ops.clock import SystemClock
from bot.settings import Settings, read_settings
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database
from bot.store.tables import audit_entries, audit_head

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "signing-secret-word",
    "ALERTS_CHANNEL": "C0ALERTS",
    "APPROVALS_CHANNEL": "G0APPROVALS",
}
MOVED = tuple(
    update(audit_entries).where(audit_entries.c.position == old).values(position=new)
    for old, new in ((2, 9), (3, 2), (9, 3))
)
DAMAGES = {
    "edited": (update(audit_entries).where(audit_entries.c.position == 3).values(actor="U2"),),
    "removed": (delete(audit_entries).where(audit_entries.c.position == 3),),
    "moved": MOVED,
    "cut": (delete(audit_entries).where(audit_entries.c.position > 2),),
}
BROKEN_AT = {"edited": 3, "removed": 3, "moved": 2, "cut": 3}


def settings(url: str, **more: str) -> Settings:
    return read_settings({**LEAST, "DATABASE_URL": url, **more})


@pytest.fixture
async def chain(sqlite_url):
    """A database with four entries."""
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


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_said_with_its_place(chain, sqlite_url, capsys, damage):
    async with chain.transaction() as tx:
        for statement in DAMAGES[damage]:
            await tx.connection.execute(statement)
    assert await verify_audit(settings(sqlite_url), None) == 1
    assert f"broken at entry {BROKEN_AT[damage]}" in capsys.readouterr().out


async def test_a_cut_tail_is_found_by_a_head_noted_earlier(chain, sqlite_url, capsys):
    keyed = settings(sqlite_url)
    _, noted = await head_of(chain)
    assert await verify_audit(keyed, noted) == 0
    async with chain.transaction() as tx:
        third = (await audit.latest(tx, 2))[-1]
        await tx.connection.execute(delete(audit_entries).where(audit_entries.c.position > 3))
        forged = update(audit_head).values(position=third.position, hash=third.hash)
        await tx.connection.execute(forged)
    assert await verify_audit(keyed, None) == 0
    assert await verify_audit(keyed, noted) == 1
    assert "newest entries were removed" in capsys.readouterr().out


async def test_a_database_that_is_away_is_no_verdict(capsys):
    assert await verify_audit(settings("postgresql://u:p@127.0.0.1:1/none"), None) == 2
    assert "can't reach its database" in capsys.readouterr().out


async def test_a_file_that_is_not_there_is_said_and_not_made(tmp_path, capsys):
    path = tmp_path / "wrong.db"
    assert await verify_audit(settings(f"sqlite:///{path}"), None) == 2
    said = capsys.readouterr().out
    assert said == f"There is no database file {path}. Check DATABASE_URL.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unused_url(empty_database_url) -> str:
    """A database that is there, with nothing in it."""
    address = make_url(empty_database_url)
    if address.get_backend_name() == "sqlite":
        Path(address.database).touch()
    return empty_database_url


async def test_a_database_that_was_never_used_is_said(unused_url, capsys):
    assert await verify_audit(settings(unused_url), None) == 2
    assert "never been used by Gatehouse" in capsys.readouterr().out
