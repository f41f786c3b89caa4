"""The table of open Home tabs."""

from sqlalchemy import Column, Index, String, Table

from bot.store.tables import metadata, required
from bot.store.types import UtcDateTime

# The people who opened the Home tab, and a digest of the content that it's known to show.
home_views = Table(
    "home_views",
    metadata,
    Column("slack_user_id", String(64), primary_key=True),
    required("opened_at", UtcDateTime),
    Column("published_at", UtcDateTime),
    required("digest", String(64)),
    Index(None, "opened_at"),
)
