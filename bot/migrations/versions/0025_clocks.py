"""Add how far the database's clock is ahead of the time since a machine started."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "clocks",
        sa.Column("boot", sa.String(64), primary_key=True),
        sa.Column("ahead", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
