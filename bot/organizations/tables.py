"""The table of stored lists of organizations."""

from sqlalchemy import JSON, Column, String, Table

from bot.store.tables import metadata
from bot.store.types import UtcDateTime

listings = Table(
    "listings",
    metadata,
    Column("data_center", String(16), primary_key=True),
    Column("fetched_at", UtcDateTime, nullable=False),
    Column("organizations", JSON, nullable=False),
    Column("digest", String(64), nullable=False, server_default=""),
)
