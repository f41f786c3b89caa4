"""`python -m tests.load.forgetting`: forget a million messages; print a table for each database.

They are older than `RETAIN_DAYS`, as are their requests and cards and as many sums of hours; a
tenth of that is not. Somebody else writes meanwhile.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from sqlalchemy import Table, func, insert, select, text

from bot.app import PRUNES
from bot.background.retention import Retention
from bot.model.testusers.approval import State
from bot.ops.clock import SystemClock
from bot.store.engine import Database, Transaction
from bot.store.migrations import migrate
from bot.store.patience import STATEMENT_SECONDS
from bot.store.tables import cards, outbox_messages, quota_hours, requests
from tests.load.loading import Line, new_database, table
from tests.support.loop_time import seconds_now

MESSAGES, MESSAGES_EACH, KEPT_SHARE = 1_000_000, 4, 10
RETAIN_DAYS, AGE = 400, timedelta(days=500)
CHUNK = 10_000
# It is done once a day; what takes longer than this does not end for sure.
MOST_SECONDS = 600.0
PAUSE_SECONDS = 0.01
IDENTITIES = [f"+1555010{number:04}" for number in range(10)]
TABLES = (requests, outbox_messages, cards, quota_hours)


class Timed:
    """A database whose transactions are timed, as retention uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read_only = database.read_only
        self.took: list[float] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """As `Database.transaction`."""
        began = seconds_now()
        async with self._database.transaction() as tx:
            yield tx
        self.took.append(seconds_now() - began)


async def measure(kind: str, messages: int) -> list[Line]:
    """Fill a new database, and forget what is old."""
    async with new_database(kind) as url:
        database = Database(url, SystemClock())
        await migrate(database)
        kept = messages // KEPT_SHARE
        await _fill(database, messages, AGE, "old")
        await _fill(database, kept, timedelta(), "new")
        timed, waits = Timed(database), list[float]()
        other = asyncio.create_task(_write_for_ever(database, waits))
        began = seconds_now()
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_SECONDS):
                await Retention(timed, RETAIN_DAYS, PRUNES).run(None, None)
        took = seconds_now() - began
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        left = await _counts(database)
        await database.close()
    wanted = {one.name: _count_of(one, kept) for one in TABLES}
    return [
        Line("in all", f"{took:.0f} s", f"{MOST_SECONDS:.0f} s", took < MOST_SECONDS),
        Line("transactions", f"{len(timed.took):,}", "", is_well=True),
        _short("the longest one", timed.took),
        _short("another writer waited at most", waits),
        Line("rows left", _said(left), _said(wanted), left == wanted),
    ]


def _short(what: str, took: list[float]) -> Line:
    """Nobody waits so long that it is given up."""
    wanted = f"{STATEMENT_SECONDS} s"
    return Line(what, f"{max(took):.2f} s", wanted, max(took) < STATEMENT_SECONDS)


def _said(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _count_of(stored: Table, messages: int) -> int:
    return messages // (MESSAGES_EACH if stored in {requests, cards} else 1)


async def _counts(database: Database) -> dict[str, int]:
    async with database.read_only() as tx:
        queries = {one.name: select(func.count()).select_from(one) for one in TABLES}
        return {name: await tx.connection.scalar(query) for name, query in queries.items()}


async def _write_for_ever(database: Database, waits: list[float]) -> None:
    while True:
        began = seconds_now()
        await database.try_writing()
        waits.append(seconds_now() - began)
        await asyncio.sleep(PAUSE_SECONDS)


async def _fill(database: Database, messages: int, age: timedelta, prefix: str) -> None:
    """Store so many messages of that age, with their requests and cards, and sums of hours."""
    async with database.read_only() as tx:
        at = await tx.now() - age
    for stored in TABLES:
        count = _count_of(stored, messages)
        for begun in range(0, count, CHUNK):
            numbers = range(begun, min(begun + CHUNK, count))
            async with database.transaction() as tx:
                rows = [_row(stored, prefix, number, at) for number in numbers]
                await tx.connection.execute(insert(stored), rows)
    async with database.migrating() as tx:
        # PostgreSQL does so by itself some time later.
        await tx.connection.execute(text("ANALYZE" if tx.is_postgres else "SELECT 1"))


def _row(stored: Table, prefix: str, number: int, at: datetime) -> dict[str, object]:
    """The row of a table with that number."""
    if stored is requests:
        return _request(f"{prefix}{number}", at)
    if stored is cards:
        return _card(f"request:{prefix}{number}", at)
    if stored is outbox_messages:
        return _message(f"{prefix}{number // MESSAGES_EACH}", number % 2, at)
    return _hour(number, at)


def _request(request_id: str, at: datetime) -> dict[str, object]:
    change = {"additions": IDENTITIES, "removals": []}
    who = {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}
    return {
        "id": request_id,
        "flow_key": "FW00000000000000000000000000000001",
        "flow_sid": "FW00000000000000000000000000000001",
        "flow_alias": "welcome",
        "requester_id": "U0OPERATOR",
        "requester_name": "Otto Operator",
        "state": State.APPLIED.value,
        "version": 3,
        "created_at": at,
        "expires_at": at + timedelta(days=1),
        "decided_by_id": who["slack_user_id"],
        "decided_by_name": who["name"],
        "decided_at": at,
        "requested": {"change": change, "listed": IDENTITIES, "reason": "the demo on Friday"},
        "progress": {"approvals": [{"who": who, "at": at.isoformat()}], "done": change},
    }


def _message(request_id: str, is_card: int, at: datetime) -> dict[str, object]:
    return {
        "key": f"{'request' if is_card else 'requester'}:{request_id}",
        "kind": "testusers.card" if is_card else "testusers.outcome",
        "subject": request_id,
        "payload": {} if is_card else {"event": "applied"},
        "created_at": at,
        "tries": 1,
        "sent_at": at,
    }


def _card(key: str, at: datetime) -> dict[str, object]:
    return {
        "key": key,
        "channel_id": "C0APPROVALS",
        "message_ts": "1770000000.000100",
        "fingerprint": "f" * 64,
        "sent_at": at,
    }


def _hour(number: int, at: datetime) -> dict[str, object]:
    return {
        "organization": number % 500,
        "hour_at": at.timestamp() - number // 500,
        "kind": "watch",
        "slack_user_id": "",
        "calls": 6,
    }


def main() -> int:
    """Measure on each database that is asked for; return 1 where it is not well."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.forgetting", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args()
    is_well = True
    for kind in options.database or ["sqlite", "postgres"]:
        lines = asyncio.run(measure(kind, options.messages))
        sys.stdout.write(table(kind, lines) + "\n\n")
        is_well &= all(line.is_well for line in lines)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
