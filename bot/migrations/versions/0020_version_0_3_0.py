"""The schema of version 0.3.0, the oldest version that can be upgraded.

A new database skips the migrations and gets the tables in the modules `tables`.
"""

revision = "0020"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise NotImplementedError
