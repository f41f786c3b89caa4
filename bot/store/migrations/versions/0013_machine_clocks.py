"""By which clock the ledger is written where the database has none of its own."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import EpochSeconds

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "machine_clocks",
        sa.Column("boot", sa.String(64), nullable=False),
        sa.Column("offset", EpochSeconds, nullable=False),
        sa.PrimaryKeyConstraint("boot", name="pk_machine_clocks"),
    )
