"""A SQLite file's clock is kept with the hourly job; nobody reads the calls of past days."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("machine_clocks")
    op.drop_table("quota_hours")
