"""The command line answers questions about itself without importing the server."""

import subprocess
import sys

import pytest

from bot.__main__ import main
from tests.support.forks import ROOT

HEAVY = ("aiohttp", "alembic", "psycopg", "pydantic", "slack_bolt", "slack_sdk", "sqlalchemy")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["check", "--help"]])
def test_help_and_version_import_no_library(words):
    status, said, imported = run(*words)
    assert status == 0
    assert "gatehouse" in said
    assert "argparse" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("words", [[], ["policy", "explain", "welcome"]])
def test_wrong_settings_are_told_without_importing_the_server(words):
    status, _, imported = run(*words, GATEHOUSE_CONFIG="", PORT="none")
    assert status == 2
    assert "bot.settings" in imported
    assert imported.isdisjoint({"aiohttp", "slack_bolt", "bot.serve"})


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_output_that_was_closed_before_the_start_is_no_failure(monkeypatch, stream):
    monkeypatch.setattr(sys, stream, None)
    assert main(["gateway-token"]) == 0


def run(*words: str, **environment: str) -> tuple[int, str, set[str]]:
    """Return the exit status, the output, and the names of all imported modules."""
    program = [sys.executable, "-X", "importtime", "-m", "bot", *words]
    ended = subprocess.run(
        program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    return ended.returncode, ended.stdout, imported
