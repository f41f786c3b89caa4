"""The command `gatehouse backup FILE`, which copies a SQLite database beside a running bot."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.store.sqlite import sqlite_file

UNUSABLE = 2
USE_PG_DUMP = (
    "Gatehouse backs up only SQLite databases. For PostgreSQL, use pg_dump with the"
    " commands in docs/operations.md."
)


def back_up(url: str, target: Path) -> int:
    """Copy the database to a new file, and return the exit status.

    The target appears only when the copy is complete, and only its owner can read it.
    """
    source = sqlite_file(url)
    if source is None:
        return _fail(USE_PG_DUMP)
    if not source.exists():
        return _fail(f"No database file exists at {source}. Check DATABASE_URL.")
    if os.path.lexists(target):
        return _fail(f"{target} already exists. Choose a new file name.")
    try:
        # Never create a missing file.
        with closing(
            sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)
        ) as database:
            database.execute("SELECT count(*) FROM sqlite_schema")
            return _copy(database, target)
    except sqlite3.Error as error:
        return _fail(f"{source}: {error}.")


def _copy(database: sqlite3.Connection, target: Path) -> int:
    try:
        # Nobody else can write to this folder, and it disappears whatever happens.
        with TemporaryDirectory(
            prefix=".gatehouse-backup-", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            part = Path(folder) / "part"
            with closing(sqlite3.connect(part)) as copy:
                part.chmod(0o600)
                database.backup(copy)
            part.rename(target)
    except OSError as error:
        return _fail(f"{target}: {error.strerror or error}.")
    except sqlite3.Error as error:
        return _fail(f"{target}: {error}.")
    print(f"Backed up the database to {target}.")
    return 0


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return UNUSABLE
