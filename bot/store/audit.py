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

from sqlalchemy import BigInteger, Row, Select, select, type_coerce, update
from sqlalchemy.exc import OperationalError

from bot.model.audit import AuditEntry, RecordedEntry, Verdict
from bot.store.engine import Transaction, to_microseconds
from bot.store.tables import audit_entries, audit_head

GENESIS = "0" * 64
PAGE = 1000
UNREADABLE = "its content cannot be read"
# What SQLite's driver says of a text whose bytes are none.
NO_TEXT = "Could not decode to UTF-8"


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
        words = (entry.actor, entry.action, entry.subject, detail)
        digest = self._digest(head.hash, position, to_microseconds(at), *words)
        return RecordedEntry(
            position, at, entry.actor, entry.action, entry.subject, detail, head.hash, digest
        )

    def _digest(self, previous: str, position: int, microseconds: int, *words: str) -> str:
        parts = [previous, position, microseconds, *words]
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
            tx: A reading transaction, which sees all of it as it stood at one moment.
            noted_head: A head hash noted at some earlier time; its entry must still be there.
        """
        previous, position, seen_noted = GENESIS, 0, noted_head in (None, GENESIS)
        try:
            async for row in self._all(tx):
                reason = self._fault(row, previous, position)
                if reason:
                    return Verdict(position, previous, position + 1, reason)
                previous, position = row.hash, row.position
                seen_noted = seen_noted or row.hash == noted_head
        except UnicodeError:
            return Verdict(position, previous, position + 1, UNREADABLE)
        ends = [(row.position, row.hash) for row in await tx.connection.execute(select(audit_head))]
        if not ends:
            return Verdict(position, previous, None, "the row that says where it ends is missing")
        if ends != [(position, previous)]:
            return Verdict(position, previous, position + 1, "the newest entries are missing")
        if not seen_noted:
            return Verdict(
                position, previous, None, "the noted head is not in the chain: its tail was cut"
            )
        return Verdict(position, previous)

    def _fault(self, row: Row[Any], previous: str, position: int) -> str:
        if row.position != position + 1:
            return "an entry is missing before this one"
        if row.previous_hash != previous:
            return "it does not follow the entry before it"
        words = (row.actor, row.action, row.subject, row.detail)
        try:
            expected = self._digest(previous, row.position, row.microseconds, *words)
        except (TypeError, ValueError):
            return UNREADABLE
        return "" if row.hash == expected else "its content was edited, or the key is another"

    async def _all(self, tx: Transaction) -> AsyncIterator[Row[Any]]:
        """Yield the entries, with their times as they are stored: an edited one may be no time.

        Raises:
            UnicodeError: The next one holds a text that is none.
        """
        microseconds = type_coerce(audit_entries.c.at, BigInteger).label("microseconds")
        others = (column for column in audit_entries.c if column.name != "at")
        everything: Select[Any] = select(*others, microseconds)
        position, size = 0, PAGE
        while True:
            after = everything.where(audit_entries.c.position > position)
            page = after.order_by(audit_entries.c.position).limit(size)
            try:
                rows = (await tx.connection.execute(page)).all()
            except OperationalError as error:
                if NO_TEXT not in str(error.orig):
                    raise
                if size == 1:
                    raise UnicodeError(UNREADABLE) from error
                # Up to the one that it is.
                size = 1
                continue
            for row in rows:
                yield row
            if len(rows) < size:
                return
            position = rows[-1].position
