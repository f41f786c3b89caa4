"""Stored names in the words of the field: outbox messages, requested changes, reported limits."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

OUTBOX = "letters"
COLUMNS = ("number", "limit", "remaining", "unsure", "resets_at")
JOB_KINDS = {"testusers.click": "testusers.interaction"}
MESSAGE_KINDS = {"testusers.told": "testusers.outcome"}


def upgrade() -> None:
    _rename_outbox()
    op.alter_column("requests", "wish", new_column_name="requested")
    for name in COLUMNS:
        op.alter_column("quota_organizations", f"told_{name}", new_column_name=f"reported_{name}")
    # What waits goes on under the new names: clicks that were stored, messages that were not sent.
    _rename_kinds("jobs", JOB_KINDS)
    _rename_kinds("outbox_messages", MESSAGE_KINDS)


def _rename_outbox() -> None:
    op.drop_index(f"ix_{OUTBOX}_key_sent_at", OUTBOX)
    op.drop_index(f"ix_{OUTBOX}_sent_at", OUTBOX)
    op.rename_table(OUTBOX, "outbox_messages")
    op.create_index("ix_outbox_messages_key_sent_at", "outbox_messages", ["key", "sent_at"])
    op.create_index("ix_outbox_messages_sent_at", "outbox_messages", ["sent_at"])


def _rename_kinds(table_name: str, names: dict[str, str]) -> None:
    table = sa.table(table_name, sa.column("kind", sa.String))
    for old, new in names.items():
        op.execute(sa.update(table).where(table.c.kind == old).values(kind=new))
