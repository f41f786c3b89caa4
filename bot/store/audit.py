"""The audit: who did what and when, append-only, each entry hashed over itself and the one before.

An entry is written in the transaction of what it tells. With a key the hash is HMAC-SHA-256, so
only who has the key can write a chain that verifies; without one it is plain SHA-256, which shows
damage but not a forger who rewrote everything after it.
"""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update

from bot.model.audit import AuditEntry, RecordedEntry, Verdict
from bot.store.engine import Transaction, to_microseconds
from bot.store.tables import audit_entries, audit_head

GENESIS = "0" * 64
PAGE = 1000


class AuditStore:
    """Appends to the chain and reads it.

    Args:
        key: `AUDIT_KEY`; None for plain SHA-256.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    async def append(self, tx: Transaction, entry: AuditEntry) -> None:
        """Add an entry at the end of the chain, in the caller's transaction."""
        head = (await tx.connection.execute(select(audit_head).with_for_update())).one()
        recorded = self._recorded(entry, head, await tx.now())
        await tx.connection.execute(audit_entries.insert().values(**vars(recorded)))
        await tx.connection.execute(
            update(audit_head).values(position=recorded.position, hash=recorded.hash)
        )

    def _recorded(self, entry: AuditEntry, head: Row[Any], at: datetime) -> RecordedEntry:
        detail = json.dumps(dict(entry.detail), sort_keys=True, ensure_ascii=False)
        position = head.position + 1
        digest = self._digest(
            head.hash, position, at, entry.actor, entry.action, entry.subject, detail
        )
        return RecordedEntry(
            position, at, entry.actor, entry.action, entry.subject, detail, head.hash, digest
        )

    def _digest(self, previous: str, position: int, at: datetime, *words: str) -> str:
        parts = [previous, position, to_microseconds(at), *words]
        payload = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if self._key is None:
            return hashlib.sha256(payload).hexdigest()
        return hmac.new(self._key, payload, hashlib.sha256).hexdigest()

    async def latest(self, tx: Transaction, count: int) -> list[RecordedEntry]:
        """Return the newest entries, newest first."""
        query = select(audit_entries).order_by(audit_entries.c.position.desc()).limit(count)
        rows = await tx.connection.execute(query)
        return [RecordedEntry(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name

    async def head(self, tx: Transaction) -> tuple[int, str]:
        """Return the position and the hash of the newest entry."""
        row = (await tx.connection.execute(select(audit_head))).one()
        return row.position, row.hash

    async def verify(self, tx: Transaction, noted_head: str | None = None) -> Verdict:
        """Check every entry against the one before it, and the end against what was noted earlier.

        Args:
            tx: A reading transaction.
            noted_head: A head hash noted at some earlier time; its entry must still be there.
        """
        previous, position, seen_noted = GENESIS, 0, noted_head in (None, GENESIS)
        async for entry in self._all(tx):
            reason = self._fault(entry, previous, position)
            if reason:
                return Verdict(position, previous, position + 1, reason)
            previous, position = entry.hash, entry.position
            seen_noted = seen_noted or entry.hash == noted_head
        told_position, told_hash = await self.head(tx)
        if (told_position, told_hash) != (position, previous):
            return Verdict(position, previous, position + 1, "the newest entries are missing")
        if not seen_noted:
            return Verdict(
                position, previous, None, "the noted head is not in the chain: its tail was cut"
            )
        return Verdict(position, previous)

    def _fault(self, entry: RecordedEntry, previous: str, position: int) -> str:
        if entry.position != position + 1:
            return "an entry is missing before this one"
        if entry.previous_hash != previous:
            return "it does not follow the entry before it"
        words = (entry.actor, entry.action, entry.subject, entry.detail)
        expected = self._digest(previous, entry.position, entry.at, *words)
        if not hmac.compare_digest(expected, entry.hash):
            return "its content was edited, or the key is another"
        return ""

    async def _all(self, tx: Transaction) -> AsyncIterator[RecordedEntry]:
        position = 0
        while True:
            query = (
                select(audit_entries)
                .where(audit_entries.c.position > position)
                .order_by(audit_entries.c.position)
                .limit(PAGE)
            )
            rows = (await tx.connection.execute(query)).all()
            for row in rows:
                yield RecordedEntry(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name
            if len(rows) < PAGE:
                return
            position = rows[-1].position
