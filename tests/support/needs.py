"""Finds the programs and services that a test needs, and skips the test if one is missing."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

GNU_CHOWN = "GNU's chown"
POSTGRESQL, PACKAGE_INDEX, ROOT_USER = "PostgreSQL", "a package index", "root"
PYTHON_FOR_ALL = "a Python outside root's home"
HOW = {
    POSTGRESQL: "apt-get install postgresql, or set TEST_DATABASE_URL to a server for tests",
    PACKAGE_INDEX: "connect to the network that `make setup` used",
    PYTHON_FOR_ALL: "apt-get install python3",
    ROOT_USER: "run as root, to mount a small disk or to be another user",
    "bash": "apt-get install bash",
    "caddy": "apt-get install caddy",
    "chown": "apt-get install coreutils",
    GNU_CHOWN: "install GNU's coreutils, and put its chown first in PATH",
    "chromium": "apt-get install chromium",
    "curl": "apt-get install curl",
    "git": "apt-get install git",
    "make": "apt-get install make",
    "mount": "apt-get install mount",
    "nginx": "apt-get install nginx",
    "pg_dump": "apt-get install postgresql-client",
    "pgbouncer": "apt-get install pgbouncer",
    "promtool": "apt-get install prometheus",
    "psql": "apt-get install postgresql-client",
    "systemd-analyze": "apt-get install systemd",
    "umount": "apt-get install mount",
}
SKIPPED = "Skipped: "


def find_program(name: str) -> str | None:
    """Return a program's path.

    Search PostgreSQL's program folders first, then PATH, and then `/usr/sbin`.
    """
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if kept:
        return str(kept[-1])
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def needs(*names: str) -> str:
    """Skip the test if any of these programs is missing. Return the path of the first program."""
    paths = [find_program(name) or lacks(name) for name in names]
    return paths[0]


def needs_gnu_chown() -> None:
    """Skip the test if `chown` has no option `--reference`, as on macOS."""
    asked = [needs("chown"), "--version"]
    if subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        lacks(GNU_CHOWN)


def needs_package_index() -> None:
    """Skip the test if packages can't be downloaded."""
    if not _has_package_index():
        lacks(PACKAGE_INDEX)


def lacks(name: str) -> NoReturn:
    """Skip the test because `name` is missing.

    In CI, fail the test instead, because all programs must be installed there.
    """
    if os.environ.get("CI"):
        pytest.fail(f"CI needs {name}: {HOW[name]}")
    pytest.skip(f"needs {name} ({HOW[name]})")


@cache
def _has_package_index() -> bool:
    # A small package from the lock file. pip and uv may use different indexes.
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=0", "--timeout=5")
    uv = (Path(sys.executable).with_name("uv"), "pip", "--no-cache")
    dry = ("install", "--quiet", "--dry-run", "--no-deps")
    asks = ([*pip, *dry, "--ignore-installed"], [*uv, *dry, "--reinstall", "-p", sys.executable])
    return all(
        subprocess.run(
            [*ask, "iniconfig"], capture_output=True, check=False, timeout=120
        ).returncode
        == 0
        for ask in asks
    )


def skipped_lines(reasons: list[str]) -> list[str]:
    """Return a line with a count for each reason, starting with the most frequent reason."""
    counted = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    return [
        f"{count:5} {reason.removeprefix(SKIPPED)}"
        for reason, count in sorted(counted.items(), key=lambda item: -item[1])
    ]
