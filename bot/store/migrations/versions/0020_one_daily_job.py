"""Post the audit log's head in the daily job; drop its former job and an unused job."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DELETE FROM jobs WHERE key IN ('audit_witness', 'record')")
