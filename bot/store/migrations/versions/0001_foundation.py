"""Audit, jobs, the outbox, cards and listings."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

OUTBOX = "letters"  # revision 0005 renames it
ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _audit()
    _jobs()
    _outbox()
    op.create_table(
        "listings",
        sa.Column("data_center", sa.String(16), nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
        sa.Column("organizations", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("data_center", name="pk_listings"),
    )


def _audit() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("position", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_entries"),
    )
    op.create_index("ix_audit_entries_subject_position", "audit_entries", ["subject", "position"])
    head = op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )
    op.bulk_insert(head, [{"id": 1, "position": 0, "hash": "0" * 64}])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("due_at", UtcDateTime, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("leased_until", UtcDateTime),
        sa.Column("last_error", sa.Text),
        sa.PrimaryKeyConstraint("key", name="pk_jobs"),
    )
    op.create_index("ix_jobs_due_at", "jobs", ["due_at"])


def _outbox() -> None:
    op.create_table(
        OUTBOX,
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("failure", sa.Text),
        sa.PrimaryKeyConstraint("id", name=f"pk_{OUTBOX}"),
    )
    op.create_index(f"ix_{OUTBOX}_key_sent_at", OUTBOX, ["key", "sent_at"])
    op.create_index(f"ix_{OUTBOX}_sent_at", OUTBOX, ["sent_at"])
    op.create_table(
        "cards",
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("channel_id", sa.String(64), nullable=False),
        sa.Column("message_ts", sa.String(32), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("sent_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_cards"),
    )
