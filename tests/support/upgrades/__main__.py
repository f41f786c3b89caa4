"""Fills a database with this version, asks this version about it, and writes a file with both."""

import sqlite3
import sys
import tempfile
from pathlib import Path

from sqlalchemy import create_engine

from tests.support.steady import run_steadily
from tests.support.upgrades import StoredDay, rows_of, write
from tests.support.upgrades.day import BEGIN, DAY, LISTS, Day, DayClock, live, opened
from tests.support.upgrades.questions import answers_of, facts


async def make(folder: Path) -> StoredDay:
    """Fill a database in a simulated day, and return what is in it and what the bot says of it."""
    clock = DayClock(BEGIN)
    async with opened(f"sqlite:///{folder}/day.db", clock, LISTS, **DAY) as world:
        await live(Day(world))
        copy = folder / "copy.db"
        with sqlite3.connect(folder / "day.db") as source, sqlite3.connect(copy) as target:
            source.backup(target)
        flows = world.services.state.flows
        lists = {sid: list(flow.identities) for sid, flow in flows.items()}
        at = clock.now().isoformat()
    with create_engine(f"sqlite:///{folder}/copy.db").connect() as connection:
        rows = rows_of(connection)
    revision = rows.pop("alembic_version")[0]["version_num"]
    day = {"revision": revision, "at": at, "lists": lists, "rows": rows}
    answers = await answers_of(f"sqlite:///{folder}/copy.db", day)
    return {**day, "facts": facts(answers)}


with tempfile.TemporaryDirectory() as name:
    write(Path(sys.argv[1]), run_steadily(make(Path(name))))
