"""Events that were received, so that each is answered once."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "received_events",
        sa.Column("event_id", sa.String(255), nullable=False),
        sa.Column("received_at", UtcDateTime, nullable=False),
        sa.Column("answered_at", UtcDateTime),
        sa.PrimaryKeyConstraint("event_id", name="pk_received_events"),
    )
    op.create_index("ix_received_events_received_at", "received_events", ["received_at"])
