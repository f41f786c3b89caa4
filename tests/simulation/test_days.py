"""Tests that a simulated day with many faults ends without any problems."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# `make simulate` and `make check` don't run this seed.
def test_a_day_of_trouble_leaves_nothing_that_lies():
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.days", "--seed", "21"],
        cwd=ROOT,
        env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for fault in ("kill -9", "freeze", "slack away", "slack answer lost"):
        assert fault in done.stdout
