"""`python -m bot audit verify` says what holds, what does not, and what it cannot show."""

from pathlib import Path

import pytest
from sqlalchemy import delete, insert, make_url, update

from bot.model.audit import AuditEntry
from bot.ops.audit_cli import PLAIN, verify_audit
from bot.ops.clock import SystemClock
from bot.settings import Settings, read_settings
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.store.tables import audit_entries, audit_head, jobs

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "signing-secret-word",
    "ALERTS_CHANNEL": "C0ALERTS",
    "APPROVALS_CHANNEL": "G0APPROVALS",
}
KEY = "k" * 32
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
    """A database with four entries under `KEY`."""
    database = Database(sqlite_url, SystemClock())
    try:
        for number in range(4):
            async with database.transaction() as tx:
                await AuditStore(KEY.encode()).append(tx, AuditEntry("U1", f"act.{number}", "r"))
        yield database
    finally:
        await database.close()


async def head_of(database) -> tuple[int, str]:
    async with database.read_only() as tx:
        return await AuditStore(KEY.encode()).head(tx)


async def test_an_intact_chain_is_said_with_its_head(chain, sqlite_url, capsys):
    assert await verify_audit(settings(sqlite_url, AUDIT_KEY=KEY), None) == 0
    said = capsys.readouterr().out
    assert f"intact: 4 entries, head {(await head_of(chain))[1]}." in said
    assert "--head" in said
    assert PLAIN not in said


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_said_with_its_place(chain, sqlite_url, capsys, damage):
    async with chain.transaction() as tx:
        for statement in DAMAGES[damage]:
            await tx.connection.execute(statement)
    assert await verify_audit(settings(sqlite_url, AUDIT_KEY=KEY), None) == 1
    assert f"broken at entry {BROKEN_AT[damage]}" in capsys.readouterr().out


async def test_name_of_an_edited_row_stays_on_its_line(chain, sqlite_url, capsys):
    hidden = "x\x1b[2A\x1b[J\rThe audit is intact\n"
    async with chain.transaction() as tx:
        times = {"due_at": await tx.now(), "generation": 1, "tries": 0}
        values = {"key": hidden, "kind": "retain", "subject": "x", "payload": {}}
        await tx.connection.execute(insert(jobs).values(**values, **times))
    assert await verify_audit(settings(sqlite_url, AUDIT_KEY=KEY), None) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  job x\\x1b[2A\\x1b[J\\rThe audit is intact\\n" in lines
    assert all(line.isprintable() for line in lines)


async def test_a_cut_tail_is_found_by_a_head_noted_earlier(chain, sqlite_url, capsys):
    keyed = settings(sqlite_url, AUDIT_KEY=KEY)
    _, noted = await head_of(chain)
    assert await verify_audit(keyed, noted) == 0
    async with chain.transaction() as tx:
        third = (await AuditStore(KEY.encode()).latest(tx, 2))[-1]
        await tx.connection.execute(delete(audit_entries).where(audit_entries.c.position > 3))
        forged = update(audit_head).values(position=third.position, hash=third.hash)
        await tx.connection.execute(forged)
    assert await verify_audit(keyed, None) == 0
    assert await verify_audit(keyed, noted) == 1
    assert "tail was cut" in capsys.readouterr().out


async def test_without_a_key_it_says_what_it_cannot_show(sqlite_url, capsys):
    assert await verify_audit(settings(sqlite_url), None) == 0
    assert PLAIN in capsys.readouterr().out


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
    assert "never used by Gatehouse" in capsys.readouterr().out
