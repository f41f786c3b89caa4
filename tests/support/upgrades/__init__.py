"""Databases that earlier versions filled in a simulated day, and what those versions said.

Each file has the rows of a database, the lists that the flow service had, and the facts that the
version that filled the database told: who has access until when, what each card offers, what each
`Undo` and `Retry` does.

To make a file again, check out the version, copy this folder into it, and run
`python -m tests.support.upgrades FILE`.
"""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData

HERE = Path(__file__).parent
StoredDay = dict[str, Any]
Rows = dict[str, list[dict[str, Any]]]
# Tables that would make the files large. Nothing that is compared depends on them.
LEFT_OUT = ("audit_entries", "received_events")


def read(path: Path) -> StoredDay:
    """Return the day in a file."""
    found: StoredDay = json.loads(path.read_text("utf-8"))
    return found


def write(path: Path, day: StoredDay) -> None:
    """Write a day to a file, with each row and each answer on a line of its own."""

    def lines(value: Any, depth: int) -> str:
        if not depth or not value or not isinstance(value, (dict, list)):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            return "[\n" + ",\n".join(lines(item, depth - 1) for item in value) + "\n]"
        named = (f"{json.dumps(key)}: {lines(item, depth - 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(named) + "\n}"

    path.write_text(lines(day, 3) + "\n", "utf-8")


def rows_of(connection: Connection) -> Rows:
    """Return the rows of all tables that are needed, including the unsent messages."""
    schema = MetaData()
    schema.reflect(connection)
    rows = {
        table.name: [dict(row._mapping) for row in connection.execute(table.select())]
        for table in schema.sorted_tables
        if table.name not in LEFT_OUT
    }
    rows["audit_head"] = [{"id": 1, "position": 0, "hash": "0" * 64}]
    rows["outbox_messages"] = [row for row in rows["outbox_messages"] if row["sent_at"] is None]
    return {name: found for name, found in rows.items() if found}
