"""The append-only audit log. Each entry's hash covers its content and the previous hash.

An entry is written in the same transaction as the change it records. Earlier versions could compute
the hashes with a key (`AUDIT_KEY`). The first entry after such a chain, `CHAIN_BEGAN`, contains the
old head and a digest of all earlier entries.
"""

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import BigInteger, Row, Select, select, type_coerce, update
from sqlalchemy.exc import OperationalError

from bot.ops.current_delivery import delivery_id
from bot.store.audit_entry import BOT, AuditEntry, RecordedEntry, Verdict
from bot.store.engine import Transaction
from bot.store.tables import audit_entries, audit_head
from bot.store.types import to_microseconds

GENESIS = "0" * 64
PAGE = 1000
EDITED = "its content was edited"
CHAIN_BEGAN = "audit.chain_began"
# Earlier versions wrote entries with these actions and this subject when the key changed.
KEYED, SUBJECT = ("audit.key_began", "audit.key_rotated"), "audit"
WITH_KEY = (
    "it was written with AUDIT_KEY by an earlier version; restart Gatehouse to continue the chain"
    " without a key"
)
OLD_CHAIN = "earlier entries have changed since the new chain began"
UNREADABLE = "its content can't be read"
# The SQLite driver's message for text that isn't valid UTF-8.
NO_TEXT = "Could not decode to UTF-8"


_LOCKED_HEAD = select(audit_head).with_for_update()


async def append(tx: Transaction, entry: AuditEntry) -> None:
    """Append an entry to the chain, in the caller's transaction.

    If a Slack request caused the entry, the detail includes the request ID used in the logs.
    """
    head = (await tx.connection.execute(_LOCKED_HEAD)).one()
    position, at, followed = head.position + 1, await tx.now(), delivery_id()
    known = {"request_id": followed} if followed else {}
    detail = json.dumps({**known, **entry.detail}, sort_keys=True, ensure_ascii=False)
    words = (entry.actor, entry.action, entry.subject, detail)
    digest = _digest(head.hash, position, to_microseconds(at), *words)
    recorded = RecordedEntry(position, at, *words, head.hash, digest)
    await tx.connection.execute(audit_entries.insert(), vars(recorded))
    end = {"position": position, "hash": digest}
    await tx.connection.execute(update(audit_head), end)


async def begin_chain(tx: Transaction) -> None:
    """If an earlier version wrote the chain with a key, continue the chain without a key."""
    marker = await _newest_marker(tx)
    if marker is None or marker.action == CHAIN_BEGAN:
        return
    await tx.connection.execute(_LOCKED_HEAD)
    position, old_head = await head(tx)
    content = hashlib.sha256()
    async for row in all_rows(tx):
        _add_content(content, row)
    detail = {"old_entries": position, "old_head": old_head, "content": content.hexdigest()}
    await append(tx, AuditEntry(BOT, CHAIN_BEGAN, SUBJECT, detail))


async def latest(tx: Transaction, count: int) -> list[RecordedEntry]:
    """Return the `count` newest entries, newest first."""
    newest = select(audit_entries).order_by(audit_entries.c.position.desc()).limit(count)
    return [RecordedEntry(*row) for row in await tx.connection.execute(newest)]


async def after(tx: Transaction, position: int) -> list[RecordedEntry]:
    """Return the next page of entries after a position, oldest first."""
    query = select(audit_entries).where(audit_entries.c.position > position)
    rows = await tx.connection.execute(query.order_by(audit_entries.c.position).limit(PAGE))
    return [RecordedEntry(*row) for row in rows]


async def head(tx: Transaction) -> tuple[int, str]:
    """Return the position and hash of the newest entry."""
    row = (await tx.connection.execute(select(audit_head))).one()
    return row.position, row.hash


async def verify(tx: Transaction, noted_head: str | None = None) -> Verdict:
    """Check every entry against the previous entry, and check that the chain contains `noted_head`.

    Call this in a transaction that sees a snapshot, such as one from `Database.read_only`.
    """
    marker = await _newest_marker(tx)
    if marker is not None and marker.action != CHAIN_BEGAN:
        return Verdict(0, GENESIS, marker.position, WITH_KEY)
    began_at = 0 if marker is None else marker.position
    position, head, has_met_noted = 0, GENESIS, noted_head is None
    reason, old_content = "", hashlib.sha256()
    try:
        async for row in all_rows(tx):
            if reason := _fault(row, position, head, began_at, old_content):
                break
            position, head = row.position, row.hash
            has_met_noted |= position >= began_at and head == noted_head
    except (TypeError, ValueError):
        reason = UNREADABLE
    if reason:
        return Verdict(position, head, position + 1, reason)
    ends = [(row.position, row.hash) for row in await tx.connection.execute(select(audit_head))]
    if not ends:
        return Verdict(position, head, None, "the row that marks the end of the chain is missing")
    if ends != [(position, head)]:
        return Verdict(position, head, position + 1, "the newest entries are missing")
    older = f", or the head is older than entry {began_at}" if began_at else ""
    cut = f"the given head isn't in the chain, so the newest entries were removed{older}"
    return Verdict(position, head, None, "" if has_met_noted else cut)


async def all_rows(tx: Transaction) -> AsyncIterator[Row[Any]]:
    """Yield all entries, with times as integers because an edited time might not be a valid date.

    Raise UnicodeError if an entry contains invalid UTF-8.
    """
    microseconds = type_coerce(audit_entries.c.at, BigInteger).label("microseconds")
    columns = (column for column in audit_entries.c if column.name != "at")
    everything: Select[Any] = select(*columns, microseconds)
    position, size = 0, PAGE
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
            # Read one row at a time, to yield all rows before the unreadable entry.
            size = 1
            continue
        for row in rows:
            yield row
        if len(rows) < size:
            return
        position = rows[-1].position


async def _newest_marker(tx: Transaction) -> Row[Any] | None:
    is_marker = audit_entries.c.action.in_((*KEYED, CHAIN_BEGAN))
    query = select(audit_entries).where(audit_entries.c.subject == SUBJECT, is_marker)
    newest = query.order_by(audit_entries.c.position.desc()).limit(1)
    return (await tx.connection.execute(newest)).first()


def _digest(previous: str, position: int, microseconds: int, *words: str) -> str:
    parts = [previous, position, microseconds, *words]
    payload = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(payload).hexdigest()


def _add_content(content: "hashlib._Hash", row: Row[Any]) -> None:
    entry = [row.position, row.microseconds, row.actor, row.action, row.subject, row.detail]
    text = json.dumps([*entry, row.previous_hash, row.hash], ensure_ascii=False)
    content.update(text.encode("utf-8", "surrogatepass") + b"\n")


def _fault(
    row: Row[Any], position: int, head: str, began_at: int, old_content: "hashlib._Hash"
) -> str:
    if row.position != position + 1:
        return "an entry is missing before this one"
    if row.previous_hash != head:
        return "its previous hash doesn't match the entry before it"
    if row.position < began_at:
        _add_content(old_content, row)
        return ""
    words = (row.actor, row.action, row.subject, row.detail)
    if row.hash != _digest(head, row.position, row.microseconds, *words):
        return EDITED
    if row.position == began_at:
        is_same = json.loads(row.detail)["content"] == old_content.hexdigest()
        return "" if is_same else OLD_CHAIN
    return ""
