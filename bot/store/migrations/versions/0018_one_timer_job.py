"""Replace the timer jobs with one per request; each start adds it for waiting requests."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

RUNG_BY_ONE_JOB = ("expire", "remind", "unposted", "start", "escalate", "ending")


def upgrade() -> None:
    kinds = ", ".join(f"'testusers.{name}'" for name in RUNG_BY_ONE_JOB)
    op.execute(f"DELETE FROM jobs WHERE kind IN ({kinds})")  # noqa: S608 - our own names
