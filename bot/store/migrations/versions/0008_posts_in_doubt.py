"""POSTs in doubt, any number of a flow, in the place of one plan."""

import sqlalchemy as sa
from alembic import op

from bot.store.types import UtcDateTime, from_microseconds, to_microseconds

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PLANS = sa.table(
    "flow_plans",
    sa.column("flow_key", sa.String),
    sa.column("id", sa.String),
    sa.column("planned_at", sa.BigInteger),
    sa.column("plan", sa.JSON),
)
JOBS = sa.table(
    "jobs",
    sa.column("key", sa.String),
    sa.column("kind", sa.String),
    sa.column("subject", sa.String),
    sa.column("payload", sa.JSON),
    sa.column("due_at", sa.BigInteger),
    sa.column("generation", sa.BigInteger),
    sa.column("tries", sa.Integer),
)


def upgrade() -> None:
    posts = op.create_table(
        "flow_posts",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("flow_key", sa.String(34), nullable=False),
        sa.Column("sent_at", UtcDateTime, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_flow_posts"),
    )
    op.create_index("ix_flow_posts_flow_key_sent_at", "flow_posts", ["flow_key", "sent_at"])
    for row in op.get_bind().execute(sa.select(PLANS)).all():
        sent_at = from_microseconds(row.planned_at)
        content = {
            "plan": row.plan,
            "sent_at": sent_at.isoformat(),
            "seen": row.plan["before"],
        }
        values = {"id": row.id, "flow_key": row.flow_key, "sent_at": sent_at, "content": content}
        op.get_bind().execute(posts.insert().values(values))
        _see_to_it(row.flow_key, to_microseconds(sent_at))
    op.drop_table("flow_plans")


def _see_to_it(flow_key: str, due_at: int) -> None:
    """Have the list looked at, where nothing else waits on the flow."""
    key, bind = f"apply:{flow_key}", op.get_bind()
    if bind.execute(sa.select(JOBS.c.key).where(JOBS.c.key == key)).first() is None:
        job = {"kind": "testusers.apply", "subject": flow_key, "payload": {}, "due_at": due_at}
        bind.execute(JOBS.insert().values(key=key, generation=1, tries=0, **job))
