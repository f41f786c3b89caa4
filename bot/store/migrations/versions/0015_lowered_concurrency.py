"""How many calls at once an organization takes, where the service refused as many as planned."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import EpochSeconds

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quota_organizations", sa.Column("lowered_concurrent", sa.Integer))
    op.add_column("quota_organizations", sa.Column("lowered_until", EpochSeconds))
