"""Days of the whole approvals engine: nothing lies whatever goes wrong, and a seed repeats."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def simulate(*arguments: str, hash_seed: str = "random") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.days", *arguments],
        cwd=ROOT,
        env={"PYTHONHASHSEED": hash_seed, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


# `make check` lives twenty, `make simulate SEEDS=100` more.
def test_days_of_trouble_leave_nothing_that_lies():
    status, said = simulate("--seeds", "3")
    assert status == 0, said
    for fault in ("kill -9", "freeze", "slack away", "slack answer lost"):
        assert fault in said


def test_seed_comes_to_the_same_trace_again():
    first, second = (
        re.findall(r"trace (\w+)", simulate("--seed", "7", hash_seed=hash_seed)[1])
        for hash_seed in ("1", "2")
    )
    assert first == second
    assert len(first) == 1
