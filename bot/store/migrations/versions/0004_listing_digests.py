"""The digest of each listing: what says the same is neither stored nor read again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("listings", sa.Column("digest", sa.String(64), nullable=False, server_default=""))
