"""Requests, grants, plans and changes of flows."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import ExactText, UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _requests()
    _grants()
    op.create_table(
        "flow_plans",
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("planned_at", UtcDateTime, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("flow_key", name="pk_flow_plans"),
    )
    op.create_table(
        "flow_changes",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flow_changes"),
    )
    op.create_index("ix_flow_changes_flow_key_id", "flow_changes", ["flow_key", "id"])


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("flow_sid", sa.String(34), nullable=False),
        sa.Column("flow_alias", sa.String(255)),
        sa.Column("requester_id", sa.String(64), nullable=False),
        sa.Column("requester_name", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("decided_by_id", sa.String(64)),
        sa.Column("decided_by_name", sa.Text),
        sa.Column("decided_at", UtcDateTime),
        sa.Column("wish", sa.JSON, nullable=False),
        sa.Column("progress", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
    )
    op.create_index("ix_requests_flow_key_created_at", "requests", ["flow_key", "created_at"])
    op.create_index("ix_requests_state_flow_key", "requests", ["state", "flow_key"])


def _grants() -> None:
    op.create_table(
        "grants",
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("identity", ExactText, nullable=False),
        sa.Column("flow_sid", sa.String(34), nullable=False),
        sa.Column("request_id", sa.String(32), nullable=False),
        sa.Column("granted_by", sa.JSON, nullable=False),
        sa.Column("approved_by", sa.JSON, nullable=False),
        sa.Column("granted_at", UtcDateTime, nullable=False),
        sa.Column("ends_at", UtcDateTime),
        sa.PrimaryKeyConstraint("flow_key", "identity", name="pk_grants"),
    )
    op.create_index("ix_grants_flow_key_ends_at", "grants", ["flow_key", "ends_at"])
