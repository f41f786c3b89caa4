"""Signatures of what decides; the first start with AUDIT_KEY signs what stands there by then."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("requests", "grants", "flow_posts", "jobs"):
        op.add_column(table, sa.Column("signature", sa.String(64)))
