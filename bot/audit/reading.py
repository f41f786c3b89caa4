"""Reads the audit."""

from bot.store.audit import AuditStore
from bot.store.audit_entry import RecordedEntry
from bot.store.engine import Database


class AuditReading:
    """Reads the audit's latest entries."""

    def __init__(self, database: Database, audit: AuditStore) -> None:
        self._database = database
        self._audit = audit

    async def latest(self, count: int) -> tuple[list[RecordedEntry], str]:
        """Return the newest entries, newest first, and the audit's newest hash."""
        async with self._database.read_only() as tx:
            _, head = await self._audit.head(tx)
            return await self._audit.latest(tx, count), head
