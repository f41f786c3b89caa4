"""Forget which Home tabs are open: a tab is drawn when it is opened, and after a click."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DELETE FROM jobs WHERE kind IN ('home', 'homes')")
    op.drop_table("home_views")
