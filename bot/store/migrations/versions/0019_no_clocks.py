"""The clock that dates calls in a SQLite file is kept with the hourly job."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("machine_clocks")
