"""Find old cards without reading all of them, and forget why jobs failed: the log says it."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_cards_sent_at", "cards", ["sent_at"])
    op.drop_column("jobs", "last_error")
