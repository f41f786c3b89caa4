"""The table of open Home tabs."""

from sqlalchemy import Column, Index, String, Table

from bot.store.tables import metadata
from bot.store.types import UtcDateTime

# The people who opened the Home tab, and a digest of the content that it's known to show.
home_views = Table(
    "home_views",
    metadata,
    Column("slack_user_id", String(64), primary_key=True),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime),
    Column("digest", String(64), nullable=False),
    Index(None, "opened_at"),
)
