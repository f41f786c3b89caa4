"""Organizations' limits, calls, hours and incidents."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import EpochSeconds, UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _organizations()
    _calls()
    _hours()
    _incidents()


def _organizations() -> None:
    op.create_table(
        "quota_organizations",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("data_center", sa.String(16), nullable=False),
        sa.Column("organization_id", sa.String(255), nullable=False),
        sa.Column("summed", sa.BigInteger, nullable=False),
        sa.Column("plan", sa.String(16)),
        sa.Column("lowered_day", sa.Integer),
        sa.Column("told_number", sa.BigInteger),
        sa.Column("told_limit", sa.Integer),
        sa.Column("told_remaining", sa.Integer),
        sa.Column("told_unsure", sa.Integer),
        sa.Column("told_resets_at", EpochSeconds),
        sa.Column("blocks", sa.JSON, nullable=False),
        sa.Column("probing_until", EpochSeconds, nullable=False),
        sa.Column("muted_until", EpochSeconds, nullable=False),
        sa.Column("watched_at", EpochSeconds, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_quota_organizations"),
        sa.UniqueConstraint(
            "data_center",
            "organization_id",
            name="uq_quota_organizations_data_center_organization_id",
        ),
    )


def _calls() -> None:
    op.create_table(
        "quota_calls",
        sa.Column("organization", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("reserved_at", EpochSeconds, nullable=False),
        sa.Column("slot_free_at", EpochSeconds, nullable=False),
        sa.Column("permit_until", EpochSeconds, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("slack_user_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("organization", "number", name="pk_quota_calls"),
    )
    for columns in (("organization", "slot_free_at"), ("organization", "reserved_at", "number")):
        op.create_index(f"ix_quota_calls_{'_'.join(columns)}", "quota_calls", list(columns))


def _hours() -> None:
    key = ("organization", "hour_at", "kind", "slack_user_id")
    op.create_table(
        "quota_hours",
        sa.Column("organization", sa.BigInteger, nullable=False),
        sa.Column("hour_at", EpochSeconds, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("slack_user_id", sa.String(64), nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint(*key, name="pk_quota_hours"),
    )
    op.create_index("ix_quota_hours_hour_at", "quota_hours", ["hour_at"])


def _incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("organization", sa.BigInteger, nullable=False),
        sa.Column("code", sa.Integer, nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("refusals", sa.Integer, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
    )
    op.create_index("ix_incidents_closed_at", "incidents", ["closed_at"])
    op.create_index("ix_incidents_organization_code", "incidents", ["organization", "code"])
