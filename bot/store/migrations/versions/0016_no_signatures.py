"""Drop the row signatures, because the database is trusted."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("requests", "grants", "flow_posts", "jobs"):
        op.drop_column(table, "signature")
