"""Reads the audit log for `/gatehouse audit`, the daily message, and two shell commands.

The commands are `gatehouse audit verify` and `gatehouse audit export`.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bot.audit.messages import head_message
from bot.errors import DatabaseUnavailable
from bot.migrations import revision
from bot.ops.clock import SystemClock
from bot.settings import Settings
from bot.slack.sender import Outgoing, drawn
from bot.store import audit, outbox
from bot.store.audit_entry import RecordedEntry
from bot.store.causes import cause_of
from bot.store.engine import Database, Transaction
from bot.store.outbox import OutboxMessage

BROKEN = 1
UNUSABLE = 2
HEAD = "audit.head"


async def latest(database: Database, count: int) -> tuple[list[RecordedEntry], str]:
    """Return the latest entries (newest first) and the hash of the newest entry."""
    async with database.read_only() as tx:
        _, head = await audit.head(tx)
        return await audit.latest(tx, count), head


@dataclass(frozen=True)
class Witness:
    """Posts the audit log's head to a channel every day, to keep a copy outside the database."""

    channel_id: str

    async def post(self, tx: Transaction) -> None:
        """Queue a message with the current head."""
        position, head = await audit.head(tx)
        payload = {"position": position, "head": head}
        await outbox.put(tx, OutboxMessage(f"{HEAD}:{position}", HEAD, "audit", payload))

    async def note(self, _tx: Transaction, message: OutboxMessage) -> Outgoing:
        """Return the note to post for a queued message."""
        return Outgoing(self.channel_id, drawn(head_message(**message.payload)))


async def verify_audit(settings: Settings, noted_head: str | None) -> int:
    """Verify the audit log and print the result. Return 0 (intact), 1 (broken) or 2 (unusable)."""

    async def verify(database: Database) -> int:
        async with database.read_only() as tx:
            verdict = await audit.verify(tx, noted_head)
        print(verdict)
        if verdict.is_intact and noted_head is None:
            print(
                "To also detect changes to the latest entries, use --head HASH with a hash that you"
                " saved earlier."
            )
        return 0 if verdict.is_intact else BROKEN

    return await _with_audit(settings, verify)


async def export_audit(settings: Settings, since: int) -> int:
    """Print the entries after the position `since` as JSON lines. Return the exit status."""

    async def export(database: Database) -> int:
        # Databases have no larger numbers.
        position = min(since, sys.maxsize)
        while True:
            async with database.read_only() as tx:
                entries = await audit.after(tx, position)
            if not entries:
                return 0
            for entry in entries:
                detail: object = entry.detail
                with suppress(ValueError):
                    detail = json.loads(entry.detail)
                print(json.dumps({**vars(entry), "at": entry.at.isoformat(), "detail": detail}))
            position = entries[-1].position

    return await _with_audit(settings, export)


async def _with_audit(settings: Settings, work: Callable[[Database], Awaitable[int]]) -> int:
    """Run `work` on the database. Return the exit status, which is 2 for an unusable database."""
    database = Database(settings.database_url.get_secret_value(), SystemClock())
    try:
        # Connecting would create a missing file.
        if database.file is not None and not database.file.exists():
            print(f"No database file exists at {database.file}. Check DATABASE_URL.")
            return UNUSABLE
        if await revision(database) is None:
            print("Gatehouse has never used this database. It doesn't contain Gatehouse's tables.")
            return UNUSABLE
        return await work(database)
    except DatabaseUnavailable as error:
        print(f"{error.sentence} {cause_of(error).explanation}")
        return UNUSABLE
    finally:
        await database.close()
