"""`.ci/run` puts in place what is missing, and leaves alone what it is given."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs: `make` says which database it is given, the others must not be run."""
    for name in ("apt-get", "pg_createcluster", "pg_ctlcluster", "pg_isready", "psql"):
        place(tmp_path / name, f"echo {name} was run; exit 1")
    for name in ("chromium", "pgbouncer", "promtool"):
        place(tmp_path / name, "exit 0")
    place(tmp_path / "make", 'echo "make $* with $TEST_DATABASE_URL"')
    return tmp_path


def place(program: Path, does: str) -> None:
    program.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    program.chmod(0o755)


def test_a_given_database_is_used_and_no_server_is_looked_for(programs: Path) -> None:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "TEST_DATABASE_URL": "postgresql://elsewhere/db"}
    ran = subprocess.run([ROOT / ".ci/run"], env=environment, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"make check with postgresql://elsewhere/db\n")
