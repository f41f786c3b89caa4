"""End scheduled starts, and merge what a request's attempts have changed into one record.

Nothing that was approved for a later time is applied: it needs approval again.
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime, to_microseconds

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

# Settings aren't known here, so this is the default of REQUEST_HOURS.
EXPIRES_AFTER = timedelta(hours=24)
NEWS = "This change no longer waits for {start:%d %B %Y %H:%M} UTC: it applies when approved."

REQUESTS = sa.table(
    "requests",
    *(sa.column(name) for name in ("id", "flow_sid", "state", "version")),
    *(sa.column(name) for name in ("decided_by_id", "decided_by_name")),
    *(sa.column(name, UtcDateTime) for name in ("expires_at", "decided_at")),
    *(sa.column(name, sa.JSON) for name in ("requested", "progress")),
)
OUTBOX = sa.table(
    "outbox_messages",
    *(sa.column(name) for name in ("key", "kind", "subject", "tries")),
    sa.column("payload", sa.JSON),
    sa.column("created_at", UtcDateTime),
)
JOBS = sa.table(
    "jobs",
    *(sa.column(name) for name in ("key", "kind", "subject", "generation", "tries")),
    sa.column("payload", sa.JSON),
    sa.column("due_at", UtcDateTime),
)
HEAD = sa.table("audit_head", sa.column("position"), sa.column("hash"))
ENTRIES = sa.table(
    "audit_entries",
    *(sa.column(name) for name in ("position", "actor", "action", "subject", "detail")),
    *(sa.column(name) for name in ("previous_hash", "hash")),
    sa.column("at", UtcDateTime),
)


def upgrade() -> None:
    connection, now = op.get_bind(), datetime.now(UTC)
    is_open = REQUESTS.c.state.in_(("pending", "scheduled", "applying", "failed"))
    for row in connection.execute(sa.select(REQUESTS).where(is_open).with_for_update()).all():
        changed = _without_part(row.progress)
        if start := row.requested.get("starts_at"):
            changed |= _without_start(row, datetime.fromisoformat(start), changed, now)
        if changed:
            values = {"version": row.version + 1, **changed}
            connection.execute(sa.update(REQUESTS).where(REQUESTS.c.id == row.id).values(values))
        if row.state == "scheduled" and not _is_over(changed["requested"]["ends"], now):
            _tell(connection, row, changed["progress"]["news"], now)


def _without_part(progress: dict[str, Any]) -> dict[str, Any]:
    if not progress.get("part"):
        return {}
    return {"progress": {**progress, "done": progress["part"], "part": None}}


def _without_start(
    row: Any,  # noqa: ANN401 - a row of the table
    start: datetime,
    changed: dict[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """Return the request's new values, with a fixed end instead of a start and a duration."""
    requested, progress = dict(row.requested), dict(changed.get("progress", row.progress))
    if seconds := requested["duration_seconds"]:
        end = (start + timedelta(seconds=seconds)).isoformat()
        ends = dict.fromkeys(requested["change"]["additions"], end)
        requested |= {"duration_seconds": None, "ends": ends | requested["ends"]}
    requested["starts_at"] = None
    values: dict[str, Any] = {"requested": requested}
    if row.state in {"pending", "scheduled"}:
        requested |= {"shown_at": now.isoformat(), "card_version": 2}
        progress |= {"news": [NEWS.format(start=start.astimezone(UTC))], "approvals": []}
        values["progress"] = progress
    if row.state == "scheduled":
        progress |= {"rule": None, "rung": [], "asked_at": now.isoformat()}
        values |= {
            "state": "pending",
            "expires_at": now + EXPIRES_AFTER,
            "decided_by_id": None,
            "decided_by_name": None,
            "decided_at": None,
        }
    return values


def _is_over(ends: dict[str, str], now: datetime) -> bool:
    """Return True if the access would already have ended. The bot then expires the request."""
    return bool(ends) and all(datetime.fromisoformat(end) <= now for end in ends.values())


def _tell(
    connection: sa.Connection,
    row: Any,  # noqa: ANN401 - a row of the table
    news: list[str],
    now: datetime,
) -> None:
    """Record in the audit log that the request needs approval again, and tell the requester."""
    head = connection.execute(sa.select(HEAD).with_for_update()).one()
    detail = json.dumps({"flow": row.flow_sid, "news": news}, sort_keys=True)
    words = ("gatehouse", "request.asked_again", row.id, detail)
    linked = [head.hash, head.position + 1, to_microseconds(now), *words]
    entry = dict(zip(("actor", "action", "subject", "detail"), words, strict=True))
    entry |= {"position": head.position + 1, "at": now, "previous_hash": head.hash}
    entry["hash"] = hashlib.sha256(json.dumps(linked, ensure_ascii=False).encode()).hexdigest()
    connection.execute(sa.insert(ENTRIES).values(entry))
    connection.execute(sa.update(HEAD).values(position=entry["position"], hash=entry["hash"]))
    key = f"requester:{row.id}"
    message = {"key": key, "kind": "testusers.outcome", "subject": row.id, "tries": 0}
    message |= {"payload": {"event": "asked_again"}, "created_at": now}
    connection.execute(sa.insert(OUTBOX).values(message))
    job = {"key": f"send:{key}", "kind": "send", "subject": key, "generation": 1, "tries": 0}
    if not connection.scalar(sa.select(JOBS.c.key).where(JOBS.c.key == job["key"])):
        connection.execute(sa.insert(JOBS).values(job | {"payload": {}, "due_at": now}))
