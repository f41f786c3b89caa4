"""`.ci/run` puts in place what is missing, leaves alone what it is given, and checks all."""

import os
import re
import shutil
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


def test_ci_runs_make_check_alone_with_or_without_a_database() -> None:
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^ *(?:exec )?make\b(.*)$", text) == [" check", " check"]


def test_make_check_lives_twenty_simulated_days_before_all_tests() -> None:
    make = shutil.which("make")
    assert make is not None
    said = subprocess.run(
        [make, "--dry-run", "--old-file", ".venv/.stamp", "--directory", ROOT, "check"],
        # Without what `make check SEEDS=3` would tell those it starts.
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ran = re.findall(r"(?m)^\.venv/bin/(\S+)(.*)$", said)
    assert [name for name, _ in ran] == ["ruff", "ruff", "lint-imports", "mypy", "python", "python"]
    assert [arguments for name, arguments in ran if name == "python"] == [
        " -m tests.simulation.days --seeds 20",
        " -m pytest -n auto --dist worksteal",
    ]
