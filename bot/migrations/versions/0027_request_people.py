"""Store each person of a request in a row, and each list once.

The rows take the place of grants, of recorded changes, and of the maps in requests. What a request
did for a person is derived from what was recorded.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from bot.store.types import ExactText, UtcDateTime
from bot.testusers.store import person_key

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

OLD = ("requests", "grants", "flow_changes", "flow_posts")
OPEN = ("pending", "applying", "failed")
# For this long, a list without a change that the bot has made isn't believed.
CONFIRMED = timedelta(seconds=60)
Json = dict[str, Any]


def upgrade() -> None:
    connection = op.get_bind()
    _create_tables()
    for column in (
        sa.Column("undo_of", sa.String(32)),
        sa.Column("list_id", sa.BigInteger, nullable=False, server_default="0"),
    ):
        op.add_column("requests", column)
    op.add_column("cards", sa.Column("digest", sa.String(64), nullable=False, server_default=""))
    op.add_column(
        "flow_posts", sa.Column("list_id", sa.BigInteger, nullable=False, server_default="0")
    )
    tables = _tables(connection)
    list_ids = _carry_over_lists(connection, tables)
    grants = defaultdict[str, dict[str, Any]](dict)
    for grant in connection.execute(tables["grants"].select()):
        grants[grant.request_id][grant.identity] = grant
    held = {
        (grant.flow_key, identity): grant
        for by_request in grants.values()
        for identity, grant in by_request.items()
    }
    requests, people = tables["requests"], tables["request_people"]
    # All requests are loaded first, because SQLite doesn't update a table that is being read.
    for row in connection.execute(requests.select()).all():
        rows = [*_people(row, grants.pop(row.id, {}), held)]
        if rows:
            connection.execute(people.insert(), rows)
        values = {**_request(row), "list_id": list_ids.get(row.id, 0)}
        connection.execute(requests.update().where(requests.c.id == row.id).values(values))
    for request_id, orphans in grants.items():
        _carry_over_access(connection, tables, request_id, [*orphans.values()])
    op.drop_table("grants")
    op.drop_table("flow_changes")
    for name, table, columns in (
        ("ix_requests_requester_id_created_at", "requests", ["requester_id", "created_at"]),
        ("ix_requests_decided_at", "requests", ["decided_at"]),
        ("ix_requests_undo_of", "requests", ["undo_of"]),
    ):
        op.create_index(name, table, columns)


def _create_tables() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "flow_lists",
        sa.Column("id", big_id, primary_key=True, autoincrement=True),
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("identities", sa.JSON, nullable=False),
        sa.Column("is_own", sa.Boolean, nullable=False),
    )
    op.create_index("ix_flow_lists_flow_key_id", "flow_lists", ["flow_key", "id"])
    op.create_table(
        "request_people",
        sa.Column("request_id", sa.String(32), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("spelling", sa.Text, nullable=False),
        sa.Column("wants", sa.String(8), nullable=False),
        sa.Column("asked_end", sa.BigInteger),
        sa.Column("asked_seconds", sa.Integer),
        sa.Column("shown", sa.String(8), nullable=False),
        sa.Column("shown_end", sa.BigInteger),
        sa.Column("shown_seconds", sa.Integer),
        sa.Column("did", sa.String(8), nullable=False),
        sa.Column("did_at", sa.BigInteger),
        sa.Column("ends_at", sa.BigInteger),
        sa.Column("was_listed", sa.Boolean, nullable=False),
        sa.Column("earlier_end", sa.BigInteger),
        sa.Column("over", sa.String(8)),
        sa.Column("over_at", sa.BigInteger),
    )
    op.create_index("ix_request_people_flow_key_person", "request_people", ["flow_key", "person"])
    is_access = sa.text("wants = 'add' AND did = 'made' AND over IS NULL")
    op.create_index(
        "ux_request_people_access",
        "request_people",
        ["flow_key", "spelling"],
        unique=True,
        sqlite_where=is_access,
        postgresql_where=is_access,
    )


def _tables(connection: sa.Connection) -> Mapping[str, sa.Table]:
    """Return the tables, with the column types that the bot uses."""
    schema = sa.MetaData()
    schema.reflect(connection, only=(*OLD, "request_people", "flow_lists"))
    times = {"at", "asked_end", "shown_end", "did_at", "ends_at", "earlier_end", "over_at"}
    times |= {"created_at", "expires_at", "decided_at", "granted_at", "sent_at"}
    for table in schema.tables.values():
        for column in table.c:
            if column.name in times:
                column.type = UtcDateTime()
            elif column.name in {"identity", "spelling"}:
                column.type = ExactText()
    return schema.tables


def _carry_over_lists(
    connection: sa.Connection, tables: Mapping[str, sa.Table]
) -> Mapping[str, int]:
    """Store the lists that open requests and POSTs were compared with, once each, in order.

    Return the IDs of the lists, keyed by the IDs of requests.
    """
    requests, flow_posts = tables["requests"], tables["flow_posts"]
    opened, changes = defaultdict[str, list[Any]](list), defaultdict[str, list[Any]](list)
    query = requests.select().where(requests.c.state.in_(OPEN)).order_by(requests.c.created_at)
    for row in connection.execute(query):
        opened[row.flow_key].append(row)
    for row in connection.execute(tables["flow_changes"].select().order_by(sa.text("id"))):
        changes[row.flow_key].append(row)
    posts = {
        row.flow_key: row
        for row in connection.execute(flow_posts.select().order_by(flow_posts.c.sent_at))
    }
    list_ids: dict[str, int] = {}
    for flow_key in {*opened, *changes, *posts}:
        writer = _Lists(connection, tables["flow_lists"], flow_key)
        waiting = sorted(opened[flow_key], key=_compared_at)
        for change in changes[flow_key]:
            while waiting and waiting[0].requested["seen_change_id"] < change.id:
                row = waiting.pop(0)
                list_ids[row.id] = writer.see(row.requested["seen"], row.created_at)
            writer.change(change)
        for row in waiting:
            list_ids[row.id] = writer.see(row.requested["seen"], row.created_at)
        if post := posts.get(flow_key):
            before = post.content["plan"]["before"]
            values = {"list_id": writer.see(before, post.sent_at), "content": _post(post.content)}
            is_post = flow_posts.c.id == post.id
            connection.execute(
                flow_posts.delete().where(flow_posts.c.flow_key == flow_key, ~is_post)
            )
            connection.execute(flow_posts.update().where(is_post).values(values))
    return list_ids


def _compared_at(row: Any) -> tuple[int, str]:  # noqa: ANN401 - a row of the table
    shown_at = row.requested.get("shown_at") or row.created_at.isoformat()
    return row.requested["seen_change_id"], shown_at


class _Lists:
    """Writes a flow's lists in order."""

    def __init__(self, connection: sa.Connection, table: sa.Table, flow_key: str) -> None:
        self._connection = connection
        self._table = table
        self._flow_key = flow_key
        self._latest: list[str] | None = None
        self._latest_id = 0

    def see(self, identities: Sequence[str], at: datetime) -> int:
        if self._latest != identities:
            self._add([*identities], at, is_own=False)
        return self._latest_id

    def change(self, row: Any) -> None:  # noqa: ANN401 - a row of the table
        additions, removals = row.content["additions"], row.content["removals"]
        if self._latest is None:
            if row.at < datetime.now(UTC) - CONFIRMED:
                return
            # The rest of the list isn't known, and isn't needed to recognize an outdated list.
            self._add(removals, row.at - CONFIRMED, is_own=False)
        kept = [identity for identity in self._latest or [] if identity not in removals]
        new = [identity for identity in additions if identity not in kept]
        self._add(kept + new, row.at, is_own=True)

    def _add(self, identities: list[str], at: datetime, *, is_own: bool) -> None:
        values = {"flow_key": self._flow_key, "at": at, "is_own": is_own}
        values |= {"identities": identities, "size": len(identities)}
        added = self._table.insert().values(values).returning(self._table.c.id)
        self._latest = identities
        self._latest_id = self._connection.execute(added).scalar_one()


def _post(content: Json) -> Json:
    plan = content["plan"]
    before, after = plan["before"], plan["after"]
    change = {
        "additions": [identity for identity in after if identity not in before],
        "removals": [identity for identity in before if identity not in after],
    }
    steps = [
        {
            "request_id": step["request_id"],
            "change": step["change"],
            "wanted": step.get("wanted") or step["change"],
            "outside": step["outside"],
            "size_before": step["size_before"],
            "late": step.get("over", []),
        }
        for step in plan["steps"]
    ]
    endings = plan.get("endings", [])
    is_answered = content.get("is_answered", False)
    return {"change": change, "steps": steps, "endings": endings, "is_answered": is_answered}


def _request(row: Any) -> Json:  # noqa: ANN401 - a row of the table
    """Return a request's new values."""
    requested, progress = row.requested, row.progress
    done = progress.get("done") or {}
    kept = ("reason", "presets", "without_approval", "card_version")
    words = {name: requested[name] for name in kept if name in requested}
    gone = {"done", "respelled", "ended", "superseded", "undone_by", "is_undone", "part"}
    result = {name: progress[name] for name in progress if name not in gone}
    is_applied = row.state == "applied"
    result |= {
        "applied_at": done.get("at") if is_applied else None,
        "size_before": done.get("size_before", 0),
        "size_after": done.get("size_after", 0),
        "outside": done.get("outside") or requested.get("outside") or {},
    }
    return {"requested": words, "progress": result, "undo_of": requested.get("undo_of")}


def _people(
    row: Any,  # noqa: ANN401 - a row of the table
    grants: dict[str, Any],
    held: Mapping[tuple[str, str], Any],
) -> Iterator[Json]:
    """Yield the rows of a request's people. `grants` are the grants of this request."""
    requested, progress = row.requested, row.progress
    change, respelled = requested["change"], progress.get("respelled", {})
    identities = [*change["additions"], *change["removals"]]
    position = 0
    for position, identity in enumerate(identities):
        person = _asked(row, identity)
        spelling = respelled.get(identity, identity)
        person |= {"position": position, "spelling": spelling, **_outcome(row, identity, spelling)}
        grant = grants.pop(spelling, None)
        if grant is not None:
            person |= _by_grant(grant)
        elif person["did"] == "made":
            person |= _over(row, person, held)
        yield {**person, "person": person_key(spelling)}
    # Each grant belongs to somebody in the request. If not, nobody must lose access by the upgrade.
    for number, grant in enumerate(grants.values(), start=len(identities)):
        yield _granted(grant, number)


def _asked(row: Any, identity: str) -> Json:  # noqa: ANN401 - a row of the table
    requested = row.requested
    is_addition = identity in requested["change"]["additions"]
    end, seconds = _time(requested.get("ends", {}).get(identity)), None
    if is_addition and end is None:
        seconds = requested.get("duration_seconds")
    shown = "add" if is_addition else "remove"
    if identity in requested.get("end_changes", ()):
        at = _time(requested.get("shown_at")) or row.created_at
        new = at + timedelta(seconds=seconds) if seconds else end
        current = _time(requested.get("current_ends", {}).get(identity))
        is_later = new is None or (current is not None and new >= current)
        shown = "keep" if is_later else "limit"
    return {
        "request_id": row.id,
        "flow_key": row.flow_key,
        "identity": identity,
        "wants": "add" if is_addition else "remove",
        "asked_end": end if is_addition else None,
        "asked_seconds": seconds,
        "shown": shown,
        "shown_end": end if is_addition else None,
        "shown_seconds": seconds,
    }


def _outcome(row: Any, identity: str, spelling: str) -> Json:  # noqa: ANN401 - a row of the table
    """Return what a request did for a person, as far as it was recorded."""
    nothing = {"did_at": None, "ends_at": None, "earlier_end": None, "over": None, "over_at": None}
    outcome: Json = {"did": "open", "was_listed": False, **nothing}
    done = row.progress.get("done")
    if not done:
        return outcome
    names = {identity, spelling}
    at = _time(done["at"])
    ends, previous = done.get("ends_at", {}), done.get("previous_ends", {})
    end = _time(next((ends[name] for name in names if name in ends), None))
    earlier = _time(next((previous[name] for name in names if name in previous), None))
    if names & {*done["change"]["additions"]}:
        return outcome | {"did": "made", "did_at": at, "ends_at": end, "earlier_end": earlier}
    if names & {*done["change"]["removals"]}:
        known = {"wants": "remove", "was_listed": True, "earlier_end": earlier}
        return outcome | {"did": "made", "did_at": at, **known}
    if names & {*done["already"]["additions"]}:
        did = "made" if end != earlier else "found"
        known = {"was_listed": True, "ends_at": end, "earlier_end": earlier}
        return outcome | {"did": did, "did_at": at, **known}
    if names & {*done["already"]["removals"]}:
        return outcome | {"did": "found", "did_at": at}
    return outcome | ({"did": "late", "did_at": at} if row.state == "applied" else {})


def _by_grant(grant: Any) -> Json:  # noqa: ANN401 - a row of the table
    made = {"wants": "add", "did": "made", "over": None, "over_at": None}
    return {**made, "did_at": grant.granted_at, "ends_at": grant.ends_at}


def _over(
    row: Any,  # noqa: ANN401 - a row of the table
    person: Json,
    held: Mapping[tuple[str, str], Any],
) -> Json:
    """Return how and when a change for a person stopped being in effect, if it did."""
    progress, spelling, made_at = row.progress, person["spelling"], person["did_at"]
    for ended in reversed(progress.get("ended", [])):
        if ended["identity"] in (spelling, person["identity"]) and person["wants"] == "add":
            over = "gone" if ended["was_gone"] else "ended"
            return {"over": over, "over_at": _time(ended["at"])}
    if progress.get("is_undone"):
        return {"over": "undone", "over_at": made_at}
    grant = held.get((row.flow_key, spelling))
    if person["wants"] == "add" or (grant is not None and grant.granted_at >= made_at):
        return {"over": "replaced", "over_at": grant.granted_at if grant else made_at}
    return {}


def _granted(grant: Any, position: int) -> Json:  # noqa: ANN401 - a row of the table
    """Return a person's row of which only the grant is known."""
    return {
        "request_id": grant.request_id,
        "position": position,
        "flow_key": grant.flow_key,
        "person": person_key(grant.identity),
        "identity": grant.identity,
        "spelling": grant.identity,
        "asked_end": grant.ends_at,
        "asked_seconds": None,
        "shown": "add",
        "shown_end": grant.ends_at,
        "shown_seconds": None,
        "was_listed": False,
        "earlier_end": None,
        **_by_grant(grant),
    }


def _carry_over_access(
    connection: sa.Connection, tables: Mapping[str, sa.Table], request_id: str, grants: list[Any]
) -> None:
    """Store a request for access whose request was deleted. `/testusers history` leaves it out."""
    first = grants[0]
    approvals = [{"who": who, "at": first.granted_at.isoformat()} for who in first.approved_by]
    values = {
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
    connection.execute(tables["requests"].insert().values(values))
    rows = [_granted(grant, position) for position, grant in enumerate(grants)]
    connection.execute(tables["request_people"].insert(), rows)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
