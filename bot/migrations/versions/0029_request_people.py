"""Store each person of a request in a row, and each list once.

The rows take the place of grants, of recorded changes, and of the maps in requests. What a request
did for a person is derived from what was recorded. What nothing needs anymore is forgotten: which
Home tabs are open, why jobs failed, and how often a card was about to be posted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from bot.store.tables import ExactText, RowId, UtcDateTime, required
from bot.testusers.store import person_key

revision = "0029"
down_revision = "0024"
branch_labels = None
depends_on = None

OLD = ("requests", "grants", "flow_changes", "flow_posts")
TIMES = {"at", "created_at", "expires_at", "decided_at", "granted_at", "ends_at", "sent_at"}
OPEN = ("pending", "applying", "failed")
# For this long, a list without a change that the bot has made isn't believed.
CONFIRMED = timedelta(seconds=60)
Json = dict[str, Any]
Row = Any
"""A row of a table."""


def upgrade() -> None:
    connection = op.get_bind()
    flow_lists, people = _change_tables()
    old = _old_tables(connection)
    list_ids = _carry_over_lists(connection, old, flow_lists)
    grants = defaultdict[str, dict[str, Row]](dict)
    held = dict[tuple[str, str], Row]()
    for grant in connection.execute(old["grants"].select()):
        grants[grant.request_id][grant.identity] = grant
        held[grant.flow_key, grant.identity] = grant
    requests = old["requests"]
    # All requests are loaded first, because SQLite doesn't update a table that is being read.
    for row in connection.execute(requests.select()).all():
        _add_people(connection, people, row, _people(row, grants.pop(row.id, {}), held))
        values = {**_request(row), "list_id": list_ids.get(row.id, 0)}
        connection.execute(requests.update().where(requests.c.id == row.id).values(values))
    for request_id, orphans in grants.items():
        values = _access(request_id, next(iter(orphans.values())))
        row = connection.execute(requests.insert().values(values).returning(requests)).one()
        _add_people(connection, people, row, map(_granted, orphans.values()))
    for table in ("grants", "flow_changes", "home_views"):
        op.drop_table(table)


def _change_tables() -> tuple[sa.Table, sa.Table]:
    op.execute("DELETE FROM jobs WHERE kind IN ('home', 'homes')")
    op.drop_column("jobs", "last_error")
    op.drop_column("outbox_messages", "tries")
    op.drop_column("received_events", "answered_at")
    op.add_column("requests", sa.Column("undo_of", sa.String(32)))
    for table in ("requests", "flow_posts"):
        op.add_column(table, required("list_id", sa.BigInteger, server_default="0"))
    op.add_column("cards", required("digest", sa.String(64), server_default=""))
    op.create_index("ix_cards_sent_at", "cards", ["sent_at"])
    for names in (["requester_id", "created_at"], ["decided_at"], ["undo_of"]):
        op.create_index(f"ix_requests_{'_'.join(names)}", "requests", names)
    # How far the database's clock is ahead of the time since a machine started.
    op.create_table(
        "clocks",
        sa.Column("boot", sa.String(64), primary_key=True),
        required("ahead", sa.BigInteger),
    )
    flow_lists = op.create_table(
        "flow_lists",
        sa.Column("id", RowId, primary_key=True, autoincrement=True),
        required("flow_key", sa.String(34)),
        required("at", UtcDateTime),
        required("size", sa.Integer),
        required("identities", sa.JSON),
        required("is_own", sa.Boolean),
        sa.Index("ix_flow_lists_flow_key_id", "flow_key", "id"),
    )
    is_access = sa.text("wants = 'add' AND did = 'made' AND over IS NULL")
    people = op.create_table(
        "request_people",
        sa.Column("request_id", sa.String(32), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        required("flow_key", sa.String(34)),
        required("person", sa.String(64)),
        required("identity", ExactText),
        required("spelling", ExactText),
        required("wants", sa.String(8)),
        sa.Column("asked_end", UtcDateTime),
        sa.Column("asked_seconds", sa.Integer),
        required("shown", sa.String(8)),
        sa.Column("shown_end", UtcDateTime),
        sa.Column("shown_seconds", sa.Integer),
        required("did", sa.String(8)),
        sa.Column("did_at", UtcDateTime),
        sa.Column("ends_at", UtcDateTime),
        required("was_listed", sa.Boolean),
        sa.Column("earlier_end", UtcDateTime),
        sa.Column("over", sa.String(8)),
        sa.Column("over_at", UtcDateTime),
        sa.Index("ix_request_people_flow_key_person", "flow_key", "person"),
        sa.Index(
            "ux_request_people_access",
            "flow_key",
            "spelling",
            unique=True,
            sqlite_where=is_access,
            postgresql_where=is_access,
        ),
    )
    return flow_lists, people


def _old_tables(connection: sa.Connection) -> Mapping[str, sa.Table]:
    """Return the tables as they were, with the column types that the bot uses."""
    schema = sa.MetaData()
    schema.reflect(connection, only=OLD)
    for table in schema.tables.values():
        for column in table.c:
            if column.name in TIMES:
                column.type = UtcDateTime()
            elif column.name == "identity":
                column.type = ExactText()
    return schema.tables


def _carry_over_lists(
    connection: sa.Connection, old: Mapping[str, sa.Table], flow_lists: sa.Table
) -> Mapping[str, int]:
    """Store the lists that open requests and POSTs were compared with, once each, in order.

    Return the IDs of the lists, keyed by the IDs of requests.
    """
    requests, posts = old["requests"], old["flow_posts"]
    latest: dict[str, tuple[int, list[str]]] = {}

    def add(flow_key: str, identities: list[str], at: datetime, *, is_own: bool) -> int:
        values = {"flow_key": flow_key, "at": at, "is_own": is_own}
        values |= {"identities": identities, "size": len(identities)}
        added = flow_lists.insert().values(values).returning(flow_lists.c.id)
        list_id: int = connection.execute(added).scalar_one()
        latest[flow_key] = list_id, identities
        return list_id

    def see(flow_key: str, identities: list[str], at: datetime) -> int:
        list_id, present = latest.get(flow_key, (0, None))
        return list_id if present == identities else add(flow_key, identities, at, is_own=False)

    # The bot's changes and open requests. A request comes after the last change that it has seen.
    events = [(row.id, "", row) for row in connection.execute(old["flow_changes"].select())]
    for row in connection.execute(requests.select().where(requests.c.state.in_(OPEN))):
        shown_at = row.requested.get("shown_at") or row.created_at.isoformat()
        events.append((row.requested["seen_change_id"], shown_at, row))
    list_ids: dict[str, int] = {}
    for _, shown_at, row in sorted(events, key=lambda event: event[:2]):
        if shown_at:
            list_ids[row.id] = see(row.flow_key, row.requested["seen"], row.created_at)
            continue
        additions, removals = row.content["additions"], row.content["removals"]
        if row.flow_key not in latest:
            if row.at < datetime.now(UTC) - CONFIRMED:
                continue
            # The rest of the list isn't known, and isn't needed to recognize an outdated list.
            add(row.flow_key, removals, row.at - CONFIRMED, is_own=False)
        kept = [identity for identity in latest[row.flow_key][1] if identity not in removals]
        new = [identity for identity in additions if identity not in kept]
        add(row.flow_key, kept + new, row.at, is_own=True)
    stored = connection.execute(posts.select().order_by(posts.c.sent_at)).all()
    # Only the latest POST of a flow counts.
    connection.execute(posts.delete())
    for row in {row.flow_key: row for row in stored}.values():
        before = see(row.flow_key, row.content["plan"]["before"], row.sent_at)
        values = {**row._mapping, "list_id": before, "content": _post(row.content)}  # noqa: SLF001
        connection.execute(posts.insert().values(values))
    return list_ids


def _post(content: Json) -> Json:
    plan = content["plan"]
    before, after = plan["before"], plan["after"]
    return {
        "change": {
            "additions": [identity for identity in after if identity not in before],
            "removals": [identity for identity in before if identity not in after],
        },
        "steps": [
            {"request_id": step["request_id"], "outside": step["outside"]} for step in plan["steps"]
        ],
        "over": [ending["identity"] for ending in plan.get("endings", [])],
        "is_answered": content.get("is_answered", False),
    }


def _request(row: Row) -> Json:
    """Return a request's new values."""
    requested, progress = row.requested, row.progress
    done = _done(row) or {}
    kept = ("reason", "presets", "without_approval", "card_version")
    gone = {"done", "respelled", "ended", "superseded", "undone_by", "is_undone", "part"}
    return {
        "undo_of": requested.get("undo_of"),
        "requested": {name: requested[name] for name in kept if name in requested},
        "progress": {
            **{name: progress[name] for name in progress if name not in gone},
            "applied_at": done.get("at") if row.state == "applied" else None,
            "size_before": done.get("size_before", 0),
            "size_after": done.get("size_after", 0),
            "outside": done.get("outside") or requested.get("outside") or {},
        },
    }


def _done(row: Row) -> Json | None:
    """Return what a request did. Version 0.3.0 had another place for a part."""
    done: Json | None = row.progress.get("done") or row.progress.get("part")
    return done


def _add_people(
    connection: sa.Connection, table: sa.Table, request: Row, people: Iterable[Json]
) -> None:
    rows = [
        {
            **dict.fromkeys(table.c.keys()),
            "was_listed": False,
            **person,
            "request_id": request.id,
            "position": position,
            "flow_key": request.flow_key,
            "person": person_key(person["spelling"]),
        }
        for position, person in enumerate(people)
    ]
    if rows:
        connection.execute(table.insert(), rows)


def _people(
    row: Row, grants: dict[str, Row], held: Mapping[tuple[str, str], Row]
) -> Iterator[Json]:
    """Yield what is known of a request's people. `grants` are the grants of this request."""
    change, respelled = row.requested["change"], row.progress.get("respelled", {})
    for identity in (*change["additions"], *change["removals"]):
        spelling = respelled.get(identity, identity)
        person = {**_asked(row, identity), "spelling": spelling}
        person |= _outcome(row, {identity, spelling})
        if grant := grants.pop(spelling, None):
            person |= _by_grant(grant)
        elif person["did"] == "made":
            person |= _over(row, person, held.get((row.flow_key, spelling)))
        yield person
    # Each grant belongs to somebody in the request. If not, nobody must lose access by the upgrade.
    yield from map(_granted, grants.values())


def _asked(row: Row, identity: str) -> Json:
    requested = row.requested
    if identity not in requested["change"]["additions"]:
        return {"identity": identity, "wants": "remove", "shown": "remove"}
    end, seconds = _time(requested.get("ends", {}).get(identity)), None
    if end is None:
        seconds = requested.get("duration_seconds")
    shown = "add"
    if identity in requested.get("end_changes", ()):
        at = _time(requested.get("shown_at")) or row.created_at
        new = at + timedelta(seconds=seconds) if seconds else end
        current = _time(requested.get("current_ends", {}).get(identity))
        is_later = new is None or (current is not None and new >= current)
        shown = "keep" if is_later else "limit"
    asked = {"asked_end": end, "asked_seconds": seconds}
    card = {"shown": shown, "shown_end": end, "shown_seconds": seconds}
    return {"identity": identity, "wants": "add", **asked, **card}


def _outcome(row: Row, names: set[str]) -> Json:
    """Return what a request did for a person, as far as it was recorded."""
    done = _done(row)
    if not done:
        return {"did": "open"}

    def end_in(ends: Mapping[str, str]) -> datetime | None:
        return _time(next((ends[name] for name in names if name in ends), None))

    change, already = done["change"], done["already"]
    end, earlier_end = end_in(done.get("ends_at", {})), end_in(done.get("previous_ends", {}))
    outcome = {"did": "made", "did_at": _time(done["at"]), "earlier_end": earlier_end}
    if names & {*change["additions"]}:
        return {**outcome, "ends_at": end}
    if names & {*change["removals"]}:
        return {**outcome, "wants": "remove", "was_listed": True}
    if names & {*already["additions"]}:
        did = "made" if end != earlier_end else "found"
        return {**outcome, "did": did, "was_listed": True, "ends_at": end}
    if names & {*already["removals"]}:
        return {**outcome, "did": "found"}
    return {**outcome, "did": "late"} if row.state == "applied" else {"did": "open"}


def _by_grant(grant: Row) -> Json:
    made = {"wants": "add", "did": "made"}
    return {**made, "did_at": grant.granted_at, "ends_at": grant.ends_at}


def _over(row: Row, person: Json, grant: Row | None) -> Json:
    """Return how and when a change for a person stopped being in effect, if it did.

    `grant` is the access that the person has by another request.
    """
    made_at = person["did_at"]
    for ended in reversed(row.progress.get("ended", [])):
        if (
            ended["identity"] in (person["spelling"], person["identity"])
            and person["wants"] == "add"
        ):
            return {"over": "gone" if ended["was_gone"] else "ended", "over_at": _time(ended["at"])}
    if row.progress.get("is_undone"):
        return {"over": "undone", "over_at": made_at}
    if person["wants"] == "add" or (grant is not None and grant.granted_at >= made_at):
        return {"over": "replaced", "over_at": grant.granted_at if grant else made_at}
    return {}


def _granted(grant: Row) -> Json:
    """Return a person of whom only the grant is known."""
    asked = {"asked_end": grant.ends_at, "shown": "add", "shown_end": grant.ends_at}
    return {"identity": grant.identity, "spelling": grant.identity, **asked, **_by_grant(grant)}


def _access(request_id: str, first: Row) -> Json:
    """Return a request for access whose request was deleted. `/testusers history` omits it."""
    approvals = [{"who": who, "at": first.granted_at.isoformat()} for who in first.approved_by]
    return {
        "id": request_id,
        "flow_key": first.flow_key,
        "flow_sid": first.flow_sid,
        "requester_id": first.granted_by["slack_user_id"],
        "requester_name": first.granted_by["name"],
        "state": "applied",
        "version": 1,
        "created_at": first.granted_at,
        "expires_at": first.granted_at,
        "list_id": 0,
        "requested": {"without_approval": not approvals},
        "progress": {"approvals": approvals, "applied_at": first.granted_at.isoformat()},
    }


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
