"""Who muted an organization's alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quota_organizations", sa.Column("muted_by", sa.Text))
