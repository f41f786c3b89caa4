"""The table of flows' lists."""

from sqlalchemy import JSON, Boolean, Column, Index, Integer, String, Table

from bot.store.tables import RowId, UtcDateTime, metadata, required

# The lists that the bot read, and the results of its own changes, in order.
flow_lists = Table(
    "flow_lists",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    required("flow_key", String(34)),
    required("at", UtcDateTime),
    required("size", Integer),
    required("identities", JSON),
    required("is_own", Boolean),
    Index(None, "flow_key", "id"),
)
