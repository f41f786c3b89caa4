"""The audit: who did what and when, append-only, each entry hashed over itself and the one before.

An entry is written in the transaction of what it tells. With a key the hash is HMAC-SHA-256, so
only who has the key can write a chain that verifies; without one it is plain SHA-256, which shows
damage but not a forger who rewrote everything after it.
"""

import hashlib
import hmac
import json
import math
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, Select, select, type_coerce, update
from sqlalchemy.exc import OperationalError

from bot.model.audit import REFUSALS, AuditEntry, RecordedEntry, Verdict
from bot.ops.deliveries import delivery_id
from bot.store.engine import Transaction
from bot.store.tables import audit_entries, audit_head
from bot.store.types import to_microseconds

GENESIS = "0" * 64
PAGE = 1000
OTHER_KEY = "its content was edited, or the key is another"
UNSEALED = "what stands before it is not what stood there when its key began to count"
# The entries from which a key counts: see `audit_keys`.
KEY_ENTRIES = ("audit.key_began", "audit.key_rotated")
# After these no request is applied any more.
OVER = frozenset({"request.applied", "request.denied", "request.cancelled", "request.expired"})
IN_PART = "request.applied_in_part"
UNREADABLE = "its content cannot be read"
# What SQLite's driver says of a text whose bytes are none.
NO_TEXT = "Could not decode to UTF-8"


class Content:
    """The digest of all entries up to some point, whatever key they were written with."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, row: Row[Any]) -> None:
        """Take in the next entry."""
        entry = [row.position, row.microseconds, row.actor, row.action, row.subject, row.detail]
        text = json.dumps([*entry, row.previous_hash, row.hash], ensure_ascii=False)
        self._sha.update(text.encode("utf-8", "surrogatepass") + b"\n")

    @property
    def digest(self) -> str:
        """The digest so far."""
        return self._sha.hexdigest()


def _named_in_part(row: Row[Any]) -> set[str]:
    """Whom an entry says to have come or gone by a request of which the rest failed."""
    if row.action != IN_PART:
        return set()
    detail = json.loads(row.detail)
    return {*detail["additions"], *detail["removals"]}


class AuditStore:
    """Appends to the chain and reads it.

    Args:
        key: `AUDIT_KEY`; None for plain SHA-256.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    @property
    def has_key(self) -> bool:
        """Whether there is a key."""
        return self._key is not None

    def sign(self, text: bytes) -> str:
        """Return what only who has the key can make of a text; "" without a key."""
        return "" if self._key is None else hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def is_own(self, row: Row[Any]) -> bool:
        """Whether an entry, as the table has it, was written with this key."""
        words = (row.actor, row.action, row.subject, row.detail)
        at = getattr(row, "microseconds", None) or to_microseconds(row.at)
        try:
            return bool(row.hash == self._digest(row.previous_hash, row.position, at, *words))
        except (TypeError, ValueError):
            return False

    async def allows(
        self,
        tx: Transaction,
        request_id: str,
        approver_ids: AbstractSet[str],
        settled: AbstractSet[str] = frozenset(),
    ) -> bool:
        """Return whether the chain has what an approved request must have, and not its end.

        It was created, and approved by these people or made without approval, in entries that only
        who has the key can write. Nobody had it applied in part but those who are `settled` by its
        row. Without a key the chain proves nothing.
        """
        if self._key is None:
            return True
        query = select(audit_entries).where(audit_entries.c.subject == request_id)
        entries = (await tx.connection.execute(query)).all()
        from_key = await self._key_counts_from(tx)
        # What is older than a rotation is sealed as a whole by it.
        counted = [row for row in entries if self._counts(row, from_key)]
        actors = [(row.action, row.actor) for row in counted]
        actions = {action for action, _ in actors}
        if actions & OVER or any(not _named_in_part(row) <= settled for row in counted):
            return False
        if "request.created_without_approval" in actions:
            return True
        approved_by = {actor for action, actor in actors if action == "request.approved"}
        is_approved = bool(approver_ids) and approver_ids <= approved_by
        return is_approved and "request.created" in actions

    def _counts(self, row: Row[Any], from_key: int) -> bool:
        return row.position < from_key or self.is_own(row)

    async def _key_counts_from(self, tx: Transaction) -> int:
        query = select(audit_entries).where(audit_entries.c.action.in_(KEY_ENTRIES))
        newest = query.order_by(audit_entries.c.position.desc()).limit(1)
        row = (await tx.connection.execute(newest)).first()
        return int(row.position) if row is not None and self.is_own(row) else 0

    async def append(self, tx: Transaction, entry: AuditEntry) -> None:
        """Add an entry at the end of the chain, in the caller's transaction.

        Its detail has as `request_id` what the log calls the request of Slack's that led to it.
        """
        head = (await tx.connection.execute(_locked_head())).one()
        recorded = self._recorded(entry, head, await tx.now())
        await tx.connection.execute(audit_entries.insert(), vars(recorded))
        end = {"position": recorded.position, "hash": recorded.hash}
        await tx.connection.execute(update(audit_head), end)

    def _recorded(self, entry: AuditEntry, head: Row[Any], at: datetime) -> RecordedEntry:
        followed = delivery_id()
        known = {"request_id": followed} if followed else {}
        detail = json.dumps({**known, **entry.detail}, sort_keys=True, ensure_ascii=False)
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
        """Return the newest entries, newest first.

        Refusals are a quarter of them at most, while there is anything else: whoever is refused
        again and again hides nothing that was done.
        """
        done = await self._newest(tx, audit_entries.c.action.not_in(REFUSALS), count)
        refused = await self._newest(tx, audit_entries.c.action.in_(REFUSALS), count)
        room = max(math.ceil(count / 4), count - len(done))
        shown = (*done, *refused[:room])
        return sorted(shown, key=lambda entry: entry.position, reverse=True)[:count]

    async def _newest(
        self, tx: Transaction, which: ColumnElement[bool], count: int
    ) -> list[RecordedEntry]:
        newest = select(audit_entries).order_by(audit_entries.c.position.desc())
        rows = await tx.connection.execute(newest.where(which).limit(count))
        return [RecordedEntry(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name

    async def after(self, tx: Transaction, position: int) -> list[RecordedEntry]:
        """Return the next entries after a position, oldest first; none at the end."""
        query = select(audit_entries).where(audit_entries.c.position > position)
        rows = await tx.connection.execute(query.order_by(audit_entries.c.position).limit(PAGE))
        return [RecordedEntry(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name

    async def head(self, tx: Transaction) -> tuple[int, str]:
        """Return the position and the hash of the newest entry."""
        row = (await tx.connection.execute(select(audit_head))).one()
        return row.position, row.hash

    async def holds_newest(self, tx: Transaction) -> bool:
        """Return whether the newest entry was written with this key; an empty chain holds."""
        position, _ = await self.head(tx)
        try:
            async for row in self.all(tx, after=position - 1):
                return not self._fault(row, row.previous_hash, row.position - 1)
        except UnicodeError:
            return False
        return True

    async def verify(self, tx: Transaction, noted_head: str | None = None) -> Verdict:
        """Check every entry against the one before it, and the end against what was noted earlier.

        Args:
            tx: A reading transaction, which sees all of it as it stood at one moment.
            noted_head: A head hash noted at some earlier time; its entry must still be there.
        """
        walk = _Walk(noted_head)
        try:
            async for row in self.all(tx):
                if walk.step(row, self._fault(row, walk.head, walk.position)):
                    break
        except UnicodeError:
            return walk.broken(walk.position + 1, UNREADABLE)
        if walk.fault is not None:
            return walk.fault
        ends = [(row.position, row.hash) for row in await tx.connection.execute(select(audit_head))]
        return walk.end(ends)

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
        return "" if row.hash == expected else OTHER_KEY

    async def all(self, tx: Transaction, after: int = 0) -> AsyncIterator[Row[Any]]:
        """Yield the entries after a position, with times as they are stored: one may be none.

        Raises:
            UnicodeError: The next one holds a text that is none.
        """
        microseconds = type_coerce(audit_entries.c.at, BigInteger).label("microseconds")
        others = (column for column in audit_entries.c if column.name != "at")
        everything: Select[Any] = select(*others, microseconds)
        position, size = after, PAGE
        while True:
            rest = everything.where(audit_entries.c.position > position)
            page = rest.order_by(audit_entries.c.position).limit(size)
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


# Made once: to make a statement takes longer than to execute it.
@cache
def _locked_head() -> Select[Any]:
    return select(audit_head).with_for_update()


class _Walk:
    """One way through the chain: where it is, and the first thing that does not hold."""

    def __init__(self, noted_head: str | None) -> None:
        self.position, self.head = 0, GENESIS
        self.fault: Verdict | None = None
        self._noted_head = noted_head
        self._has_seen_noted = noted_head is None
        self._content = Content()

    def broken(self, at: int | None, reason: str) -> Verdict:
        """Return the first fault, which is this one unless there was one before."""
        return self.fault or Verdict(self.position, self.head, at, reason)

    def step(self, row: Row[Any], reason: str) -> bool:
        """Go over an entry; return whether the chain ends there."""
        if reason:
            # Another key, unless a later entry says that it was in force until then.
            self.fault = self.broken(self.position + 1, reason)
        elif row.action in KEY_ENTRIES:
            is_sealed = _is_sealed_by(row, self._content)
            self.fault = None if is_sealed else self.broken(row.position, UNSEALED)
        if reason not in ("", OTHER_KEY):
            return True
        self._content.add(row)
        self.position, self.head = row.position, row.hash
        self._has_seen_noted = self._has_seen_noted or row.hash == self._noted_head
        return False

    def end(self, ends: list[tuple[int, str]]) -> Verdict:
        """Compare the last entry with what is stored of it, and with what was noted."""
        if not ends:
            return self.broken(None, "the row that says where it ends is missing")
        if ends != [(self.position, self.head)]:
            return self.broken(self.position + 1, "the newest entries are missing")
        if not self._has_seen_noted:
            what = "all of it was removed" if self.position == 0 else "its tail was cut"
            return self.broken(None, f"the noted head is not in the chain: {what}")
        return Verdict(self.position, self.head)


def _is_sealed_by(row: Row[Any], content: Content) -> bool:
    """Whether an entry from which a key counts says what stands before it."""
    try:
        detail = json.loads(row.detail)
    except ValueError:
        return False
    return isinstance(detail, dict) and detail.get("content") == content.digest
