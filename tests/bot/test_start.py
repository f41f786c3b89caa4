"""What a start loads: whatever it does not use costs every start time, and memory for good."""

import subprocess
import sys

UNUSED = (
    "alembic",
    "asyncpg",
    "bot.clients.oauth",
    "bot.gateway.server",
    "slack_bolt.adapter.socket_mode.async_handler",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.orm",
)


def test_start_loads_nothing_that_it_does_not_use():
    code = f"import sys, bot.serve; print(*(name for name in {UNUSED} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert loaded.stdout.split() == []
