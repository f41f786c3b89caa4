"""The table of stored lists of organizations."""

from sqlalchemy import JSON, Column, String, Table

from bot.store.tables import UtcDateTime, metadata, required

listings = Table(
    "listings",
    metadata,
    Column("data_center", String(16), primary_key=True),
    required("fetched_at", UtcDateTime),
    required("organizations", JSON),
    required("digest", String(64), server_default=""),
)
