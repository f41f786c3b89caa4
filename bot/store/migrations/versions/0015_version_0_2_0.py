"""The schema of version 0.2.0, the oldest that can be upgraded.

A new database skips the migrations: it gets the tables of `bot.store.tables`.
"""

revision = "0015"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise NotImplementedError
