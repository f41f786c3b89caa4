"""Forget how often a card was about to be posted, because the job says whether it was."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("outbox_messages", "tries")
