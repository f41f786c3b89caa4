"""The append-only audit log. Each entry's hash covers its content and the previous hash.

An entry is written in the same transaction as the change it records.
"""

import hashlib
import json
from collections.abc import AsyncIterator
from contextvars import Context
from functools import partial
from typing import Any

import structlog
from sqlalchemy import BigInteger, Row, Select, bindparam, select, type_coerce, update
from sqlalchemy.exc import OperationalError

from bot.ops.logs import delivery_id
from bot.store.audit_entry import AuditEntry, RecordedEntry, Verification
from bot.store.engine import Transaction
from bot.store.tables import audit_entries, audit_head, to_microseconds

log = structlog.get_logger(__name__)

GENESIS = "0" * 64
PAGE = 1000
EDITED = "its content was edited"
HEAD_MISSING = (
    "the given head isn't in the chain, because it was mistyped or is newer than this database, or"
    " because the newest entries were removed"
)
UNREADABLE = "its content can't be read"
# The SQLite driver's message for text that isn't valid UTF-8.
NO_TEXT = "Could not decode to UTF-8"


# Statements are built only once, because building them takes longer than executing them.
_HEAD = select(audit_head)
_LOCKED_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = update(audit_head).values(position=bindparam("position"), hash=bindparam("hash"))
_APPEND = audit_entries.insert()


async def append(tx: Transaction, *entries: AuditEntry) -> None:
    """Append entries to the chain, in the caller's transaction.

    If a Slack request caused the entries, the detail includes the request ID used in the logs.
    """
    if not entries:
        return
    head = (await tx.execute(_LOCKED_HEAD)).one()
    position = head.position
    previous = head.hash
    at = await tx.now()
    followed = delivery_id()
    details = {"request_id": followed} if followed else {}
    for entry in entries:
        position += 1
        detail = json.dumps({**details, **entry.detail}, sort_keys=True, ensure_ascii=False)
        words = (entry.actor, entry.action, entry.subject, detail)
        digest = _digest(previous, position, to_microseconds(at), *words)
        recorded = RecordedEntry(position, at, *words, previous, digest)
        await tx.write(_APPEND, vars(recorded))
        previous = digest
        # The subject of the other entries about a flow is the flow.
        is_about_flow = entry.action.startswith("flow.")
        flow = entry.subject if is_about_flow else entry.detail.get("flow", "")
        tx.after_commit.append(partial(Context().run, _log_entry, recorded, flow))
    await tx.write(_MOVE_HEAD, {"position": position, "hash": previous})


def _log_entry(entry: RecordedEntry, flow: str) -> None:
    """Write an entry to the log, without its detail, for the team's log system."""
    log.info(
        "audit",
        time=entry.at.isoformat(),
        who=entry.actor,
        action=entry.action,
        subject=entry.subject,
        flow=flow,
        hash=entry.hash,
    )


async def latest(tx: Transaction, count: int) -> list[RecordedEntry]:
    """Return the `count` newest entries, newest first."""
    newest = select(audit_entries).order_by(audit_entries.c.position.desc()).limit(count)
    return [RecordedEntry(*row) for row in await tx.execute(newest)]


async def after(tx: Transaction, position: int) -> list[RecordedEntry]:
    """Return the next page of entries after a position, oldest first."""
    query = select(audit_entries).where(audit_entries.c.position > position)
    rows = await tx.execute(query.order_by(audit_entries.c.position).limit(PAGE))
    return [RecordedEntry(*row) for row in rows]


async def head(tx: Transaction) -> tuple[int, str]:
    """Return the position and hash of the newest entry."""
    row = (await tx.execute(_HEAD)).one()
    return row.position, row.hash


async def verify(tx: Transaction, noted_head: str | None = None) -> Verification:
    """Check every entry against the previous entry, and check that the chain contains `noted_head`.

    Call this in a transaction that sees a snapshot, such as one from `Database.read_only`.
    """
    position = 0
    head = GENESIS
    reason = ""
    has_met_noted = noted_head is None
    try:
        async for row in all_rows(tx):
            if reason := _fault(row, position, head):
                break
            position = row.position
            head = row.hash
            has_met_noted |= head == noted_head
    except (TypeError, ValueError):
        reason = UNREADABLE
    if reason:
        return Verification(position, head, position + 1, reason)
    ends = [(row.position, row.hash) for row in await tx.execute(_HEAD)]
    if not ends:
        return Verification(
            position, head, None, "the row that marks the end of the chain is missing"
        )
    if ends != [(position, head)]:
        return Verification(position, head, position + 1, "the newest entries are missing")
    return Verification(position, head, None, "" if has_met_noted else HEAD_MISSING)


async def all_rows(tx: Transaction) -> AsyncIterator[Row[Any]]:
    """Yield all entries, with times as integers because an edited time might not be a valid date.

    Raise UnicodeError if an entry contains invalid UTF-8.
    """
    microseconds = type_coerce(audit_entries.c.at, BigInteger).label("microseconds")
    columns = (column for column in audit_entries.c if column.name != "at")
    everything: Select[Any] = select(*columns, microseconds)
    position = 0
    size = PAGE
    while True:
        rest = everything.where(audit_entries.c.position > position)
        page = rest.order_by(audit_entries.c.position).limit(size)
        try:
            rows = (await tx.execute(page)).all()
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


def _digest(previous: str, position: int, microseconds: int, *words: str) -> str:
    parts = [previous, position, microseconds, *words]
    payload = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(payload).hexdigest()


def _fault(row: Row[Any], position: int, head: str) -> str:
    if row.position != position + 1:
        return "an entry is missing before this one"
    if row.previous_hash != head:
        return "its previous hash doesn't match the entry before it"
    words = (row.actor, row.action, row.subject, row.detail)
    is_same = row.hash == _digest(head, row.position, row.microseconds, *words)
    return "" if is_same else EDITED
