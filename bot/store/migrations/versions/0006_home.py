"""Home tabs that are kept up to date."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "home_views",
        sa.Column("slack_user_id", sa.String(64), nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("published_at", UtcDateTime),
        sa.Column("hash", sa.String(255)),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("unsure_until", UtcDateTime),
        sa.PrimaryKeyConstraint("slack_user_id", name="pk_home_views"),
    )
    op.create_index("ix_home_views_opened_at", "home_views", ["opened_at"])
