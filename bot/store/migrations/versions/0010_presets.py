"""Presets of test users."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "presets",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("identities", sa.JSON(), nullable=False),
        sa.Column("saved_by", sa.JSON(), nullable=False),
        sa.Column("saved_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_presets"),
    )
