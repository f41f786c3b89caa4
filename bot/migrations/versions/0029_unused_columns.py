"""Forget how often a card was about to be posted (the job says it), and a column without a use."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("outbox_messages", "tries")
    op.drop_column("received_events", "answered_at")
