"""The line of the gateway's clients: a row for each call that waits for its turn."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "gateway_waits",
        sa.Column("ticket", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("organization", sa.BigInteger, nullable=False),
        sa.Column("client", sa.String(40), nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("ticket", name="pk_gateway_waits"),
    )
    op.create_index(
        "ix_gateway_waits_organization_until", "gateway_waits", ["organization", "until"]
    )
