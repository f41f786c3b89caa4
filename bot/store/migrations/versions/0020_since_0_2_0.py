"""Drop row signatures, unused tables and replaced jobs. Add columns for a lowered minute limit."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import EpochSeconds

revision = "0020"
down_revision = "0015"
branch_labels = None
depends_on = None

# The bot adds the replacements for these jobs at each start.
REPLACED = """
    DELETE FROM jobs WHERE key IN ('audit_witness', 'record') OR kind IN (
        'testusers.expire', 'testusers.remind', 'testusers.unposted', 'testusers.start',
        'testusers.escalate', 'testusers.ending'
    )
"""


def upgrade() -> None:
    for table in ("requests", "grants", "flow_posts", "jobs"):
        op.drop_column(table, "signature")
    op.add_column("quota_organizations", sa.Column("lowered_minute", sa.Integer))
    op.add_column("quota_organizations", sa.Column("lowered_minute_until", EpochSeconds))
    for table in ("gateway_waits", "machine_clocks", "quota_hours"):
        op.drop_table(table)
    op.execute(REPLACED)
