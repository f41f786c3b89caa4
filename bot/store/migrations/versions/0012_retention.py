"""Indexes for forgetting what is old."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_outbox_messages_subject", "outbox_messages", ["subject"])
    op.create_index("ix_grants_request_id", "grants", ["request_id"])
