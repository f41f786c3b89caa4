"""A bot that has nothing to do leaves its database alone."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from bot.store.sqlite import sqlite_file
from tests.conftest import BOTH
from tests.support.world import empty_world

# The first check of the database writes, and so does a job that runs 20 s after a start.
FIRST_SECONDS = 24
SECONDS = 15
CHANGES = ("INSERT", "UPDATE", "DELETE")


def content(path: Path) -> list[bytes]:
    """Return the bytes of a SQLite database, and of its write-ahead log."""
    return [path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()]


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_idle_bot_writes_nothing_and_reads_once_a_second(database_url):
    async with empty_world(database_url, inventory_watch="off") as world:
        database, jobs = world.bot.database, world.bot.jobs
        pool = database.engine.pool
        begun, changed = [], []

        def note(_connection, cursor, statement, _parameters, context, _many):
            is_unawaited = context.execution_options.get("gatehouse_unawaited")
            if "FOR NO KEY" in statement or (
                statement.startswith(CHANGES) and (is_unawaited or cursor.rowcount)
            ):
                changed.append(statement)

        async def pass_time(times: int, seconds: float = 1) -> None:
            for _ in range(times):
                looks = len(begun)
                world.clock.ahead += timedelta(seconds=seconds)
                async with asyncio.timeout(30):
                    while len(begun) == looks or jobs._running or pool.checkedout():  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                # A load balancer asks too.
                assert await world.service.missing() is None

        event.listen(database.engine.sync_engine, "begin", begun.append)
        await pass_time(2, FIRST_SECONDS / 2)
        event.listen(database.engine.sync_engine, "after_cursor_execute", note)
        begun.clear()
        file = sqlite_file(database_url)
        before = content(file) if file else []
        await pass_time(SECONDS)
        assert changed == []
        assert len(begun) <= SECONDS
        assert (content(file) if file else []) == before
