"""Forget the jobs of muted alerts, which have no job anymore."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DELETE FROM jobs WHERE kind = 'alert'")
