"""Store a lowered minute limit; drop the gateway's queue, which each process now keeps."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import EpochSeconds

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quota_organizations", sa.Column("lowered_minute", sa.Integer))
    op.add_column("quota_organizations", sa.Column("lowered_minute_until", EpochSeconds))
    op.drop_table("gateway_waits")
