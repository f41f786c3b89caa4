"""The tables of requests, their people, presets and POSTs in doubt."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    FromClause,
    Index,
    Integer,
    String,
    Table,
    Text,
    literal_column,
)

from bot.store.tables import ExactText, UtcDateTime, metadata, required

requests = Table(
    "requests",
    metadata,
    Column("id", String(32), primary_key=True),
    required("flow_key", String(34)),
    required("flow_sid", String(34)),
    Column("flow_alias", String(255)),
    required("requester_id", String(64)),
    required("requester_name", Text),
    required("state", String(16)),
    required("version", Integer),
    required("created_at", UtcDateTime),
    required("expires_at", UtcDateTime),
    Column("decided_by_id", String(64)),
    Column("decided_by_name", Text),
    Column("decided_at", UtcDateTime),
    Column("undo_of", String(32)),
    required("list_id", BigInteger),
    required("requested", JSON),
    required("progress", JSON),
    Index(None, "flow_key", "created_at"),
    Index(None, "state", "flow_key"),
    Index(None, "requester_id", "created_at"),
    Index(None, "decided_at"),
    Index(None, "undo_of"),
)

# The entries of a flow's list that a request is about. A row that wants `add`, was `made` and isn't
# over is somebody's access. `person` is the same for all spellings of one person.
request_people = Table(
    "request_people",
    metadata,
    Column("request_id", String(32), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    required("flow_key", String(34)),
    required("person", String(64)),
    required("identity", ExactText),
    required("spelling", ExactText),
    required("wants", String(8)),
    Column("asked_end", UtcDateTime),
    Column("asked_seconds", Integer),
    required("shown", String(8)),
    Column("shown_end", UtcDateTime),
    Column("shown_seconds", Integer),
    required("did", String(8)),
    Column("did_at", UtcDateTime),
    Column("ends_at", UtcDateTime),
    required("was_listed", Boolean),
    Column("earlier_end", UtcDateTime),
    Column("over", String(8)),
    Column("over_at", UtcDateTime),
    Index(None, "flow_key", "person"),
)


def has_access(people: FromClause) -> ColumnElement[bool]:
    """Return the condition for rows that are somebody's access.

    It has no parameters, because databases use an index with a condition only if they can see it.
    """
    is_made = people.c.did == literal_column("'made'")
    return (people.c.wants == literal_column("'add'")) & is_made & people.c.over.is_(None)


HAS_ACCESS = has_access(request_people)
Index(
    "ux_request_people_access",
    request_people.c.flow_key,
    request_people.c.spelling,
    unique=True,
    sqlite_where=HAS_ACCESS,
    postgresql_where=HAS_ACCESS,
)

# Presets: named lists of people.
presets = Table(
    "presets",
    metadata,
    Column("name", String(40), primary_key=True),
    required("identities", JSON),
    required("saved_by", JSON),
    required("saved_at", UtcDateTime),
)

# Changes that are about to be sent to the flow service, or were sent with an unknown outcome.
flow_posts = Table(
    "flow_posts",
    metadata,
    Column("id", String(32), primary_key=True),
    required("flow_key", String(34)),
    required("sent_at", UtcDateTime),
    required("list_id", BigInteger),
    required("content", JSON),
    Index(None, "flow_key", "sent_at"),
)
