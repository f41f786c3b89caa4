"""What Slack delivered is acted on once, and forgotten when it cannot come again."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select

from bot.ops.current_delivery import following
from bot.slack import received_events
from bot.store.tables import received_events as table


async def taken(database, digest) -> bool:
    with following(digest):
        return await received_events.ReceivedEvents(database).take()


async def kept(database) -> set[str]:
    async with database.read_only() as tx:
        return set(await tx.connection.scalars(select(table.c.event_id)))


async def test_signature_is_taken_once_by_whoever_comes_first(database):
    at_once = await asyncio.gather(*(taken(database, "a") for _ in range(5)))
    assert sorted(at_once) == [False, False, False, False, True]
    assert await taken(database, "b")
    assert not await taken(database, "b")


async def test_what_was_rolled_back_was_not_taken(database):
    async def break_off() -> None:
        async with database.transaction() as tx:
            assert await received_events.take_in(tx)
            raise KeyError

    with pytest.raises(KeyError), following("a"):
        await break_off()
    assert await taken(database, "a")


async def test_signatures_and_events_are_forgotten_in_time(database, clock):
    await taken(database, "old")
    assert await received_events.ReceivedEvents(database).claim("Ev1")
    clock.advance(86_401)
    await taken(database, "new")
    for days, left in ((30, {"Ev1", "signature"}), (0.5, {"signature"})):
        async with database.transaction() as tx:
            await received_events.forget(tx, await tx.now() - timedelta(days=days))
        assert {item.partition(":")[0] for item in await kept(database)} == left
