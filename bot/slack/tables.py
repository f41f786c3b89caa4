"""The table of deliveries from Slack."""

from sqlalchemy import Column, Index, String, Table

from bot.store.tables import UtcDateTime, metadata, required

# Deliveries from Slack, recorded so that each is handled only once, even if Slack repeats it.
received_events = Table(
    "received_events",
    metadata,
    Column("event_id", String(255), primary_key=True),
    required("received_at", UtcDateTime),
    Index(None, "received_at"),
)
