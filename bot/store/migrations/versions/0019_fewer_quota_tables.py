"""Keep a SQLite file's clock in the hourly job; drop past days' call counts, which aren't read."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("machine_clocks")
    op.drop_table("quota_hours")
