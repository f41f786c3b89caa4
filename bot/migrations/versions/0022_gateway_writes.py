"""Hold a write through the gateway in its call's row until the audit log has its entry."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quota_calls", sa.Column("written", sa.JSON))
