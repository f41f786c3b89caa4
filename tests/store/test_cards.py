"""Where cards stand in Slack: who notes it last, and what two notes at once come to."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from bot.store import outbox
from bot.store.engine import Database
from bot.store.outbox import SentCard

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
CARD = SentCard("request:1", "C0APPROVALS", "1.0", "as posted", AT)
BLOCKED = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def note(database: Database, card: SentCard, read: SentCard | None) -> bool:
    async with database.transaction() as tx:
        return await outbox.replace_card(tx, card, read)


async def noted(database: Database) -> SentCard | None:
    async with database.read_only() as tx:
        return await outbox.sent_card(tx, CARD.key)


async def test_card_is_noted_unless_somebody_did_since_it_was_read(database):
    edited = replace(CARD, fingerprint="edited")
    assert await note(database, CARD, None)
    assert not await note(database, edited, None)
    assert await noted(database) == CARD
    assert await note(database, edited, CARD)
    assert not await note(database, replace(CARD, fingerprint="late"), CARD)
    assert await noted(database) == edited


async def test_card_that_was_forgotten_is_not_noted_again(database):
    assert not await note(database, CARD, replace(CARD, fingerprint="read"))
    assert await noted(database) is None


async def somebody_waits(database: Database) -> None:
    """Return when a transaction waits for another one."""
    blocked = False
    async with asyncio.timeout(30):
        while not blocked:
            # PostgreSQL shows one transaction the same activity each time.
            async with database.read_only() as tx:
                blocked = bool(await tx.connection.scalar(BLOCKED))


@pytest.mark.postgres
@pytest.mark.parametrize("read", [None, CARD], ids=["post", "edit"])
async def test_one_of_two_notes_at_once_counts(postgres_url, clock, read):
    """What the second one reads before the first commits is out of date when it writes."""
    one, two = Database(postgres_url, clock), Database(postgres_url, clock)
    if read:
        await note(one, read, None)
    first, second = replace(CARD, fingerprint="first"), replace(CARD, fingerprint="second")
    async with one.transaction() as tx:
        assert await outbox.replace_card(tx, first, read)
        late = asyncio.create_task(note(two, second, read))
        await somebody_waits(two)
    assert not await late
    assert await noted(one) == first
    await one.close()
    await two.close()
