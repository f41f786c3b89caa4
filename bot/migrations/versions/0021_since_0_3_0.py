"""End scheduled starts.

Nothing that was approved for a later time is applied: it needs approval again.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from bot.store.engine import insert_into
from bot.store.tables import to_microseconds

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

# Settings aren't known here, so this is the default of REQUEST_HOURS.
EXPIRES_AFTER = timedelta(hours=24)
NEWS = (
    "This change is no longer scheduled for {start:%d %B %Y %H:%M} UTC. It will be applied when it"
    " is approved."
)

CHANGED_TABLES = ("requests", "outbox_messages", "jobs", "audit_head", "audit_entries")
OPEN = ("pending", "scheduled", "applying", "failed")


def upgrade() -> None:
    connection = op.get_bind()
    now = datetime.now(UTC)
    schema = sa.MetaData()
    schema.reflect(connection, only=CHANGED_TABLES)
    requests = schema.tables["requests"]
    is_open = requests.c.state.in_(OPEN)
    for row in connection.execute(requests.select().where(is_open).with_for_update()).all():
        start = row.requested.get("starts_at")
        if not start:
            continue
        changed = _without_start(row, datetime.fromisoformat(start), now)
        values = {"version": row.version + 1, **changed}
        connection.execute(requests.update().where(requests.c.id == row.id).values(values))
        if row.state == "scheduled" and not _is_over(changed["requested"]["ends"], now):
            _tell(connection, schema.tables, row, changed["progress"]["news"], to_microseconds(now))


def _without_start(
    row: Any,  # noqa: ANN401 - a row of the table
    start: datetime,
    now: datetime,
) -> dict[str, Any]:
    """Return the request's new values, with a fixed end instead of a start and a duration."""
    requested = dict(row.requested)
    progress = dict(row.progress)
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
            "expires_at": to_microseconds(now + EXPIRES_AFTER),
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
    tables: Mapping[str, sa.Table],
    row: Any,  # noqa: ANN401 - a row of the table
    news: list[str],
    now: int,
) -> None:
    """Record in the audit log that the request needs approval again, and tell the requester."""
    head = connection.execute(tables["audit_head"].select().with_for_update()).one()
    position = head.position + 1
    detail = json.dumps({"flow": row.flow_sid, "news": news}, sort_keys=True)
    words = ("gatehouse", "request.asked_again", row.id, detail)
    linked = json.dumps([head.hash, position, now, *words], ensure_ascii=False)
    digest = hashlib.sha256(linked.encode()).hexdigest()
    entry = dict(zip(("actor", "action", "subject", "detail"), words, strict=True))
    entry |= {"position": position, "at": now, "previous_hash": head.hash, "hash": digest}
    connection.execute(tables["audit_entries"].insert().values(entry))
    connection.execute(tables["audit_head"].update().values(position=position, hash=digest))
    key = f"requester:{row.id}"
    message = {"key": key, "kind": "testusers.outcome", "subject": row.id, "tries": 0}
    message |= {"payload": {"event": "asked_again"}, "created_at": now}
    connection.execute(tables["outbox_messages"].insert().values(message))
    jobs = tables["jobs"]
    job = {"key": f"send:{key}", "kind": "send", "subject": key, "generation": 1, "tries": 0}
    new = insert_into(jobs).values(**job, payload={}, due_at=now)
    connection.execute(new.on_conflict_do_nothing())
