"""The command line answers questions about itself without importing the server."""

import subprocess
import sys

import pytest

from tests.support.forks import ROOT

HEAVY = ("aiohttp", "alembic", "psycopg", "pydantic", "slack_bolt", "slack_sdk", "sqlalchemy")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["check", "--help"]])
def test_help_and_version_import_no_library(words):
    program = [sys.executable, "-X", "importtime", "-m", "bot", *words]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "gatehouse" in ended.stdout
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "argparse" in imported
    assert imported.isdisjoint(HEAVY)
