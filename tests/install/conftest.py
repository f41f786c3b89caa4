"""Installs Gatehouse once for all tests by following step 1 of docs/install.md."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.page import PROGRAM, ROOT, SECONDS, Machine, blocks, make_repository
from tests.support.forks import IMPORTED
from tests.support.needs import needs, needs_package_index


@pytest.fixture(scope="session")
def first_step(tmp_path_factory) -> Path:
    """Follow the first installation step in a folder, and return the folder.

    The file `said` contains the output of the commands.
    """
    needs("bash", "git")
    base = tmp_path_factory.getbasetemp()
    # All test processes share the installation, which takes 20 s.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "first-step"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "said").exists():
            needs_package_index()
            make_repository(folder / "repository/gatehouse")
            machine = Machine(folder, folder)
            offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(download(folder / "wheels"))}
            said = [machine.follow(block, offline) for block in blocks("1")]
            compile_modules(folder)
            (folder / "said").write_text("".join(said), encoding="utf-8")
    return folder


def compile_modules(folder: Path) -> None:
    """Compile the modules that the installed program imports.

    Otherwise, all programs that tests start at the same time would compile all of them, and a user
    who can't write into the program's folder would do so at each start.
    """
    python = folder / PROGRAM.strip("/") / "bin/python"
    subprocess.run([python, "-c", f"import {', '.join(IMPORTED)}"], cwd=folder, check=True)


def download(folder: Path) -> Path:
    """Download the locked packages into a folder.

    The pip bundled with Python may be old, and old versions read the package index more slowly.
    """
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps")
    locks = ("-r", ROOT / "requirements.txt", "-r", ROOT / "requirements-build.txt")
    subprocess.run([*pip, "--dest", folder, *locks], check=True, timeout=SECONDS)
    return folder


@pytest.fixture
def machine(first_step, tmp_path) -> Machine:
    """Return a machine on which only the first installation step is complete."""
    return Machine(tmp_path, first_step)


@pytest.fixture(scope="session")
def installed(first_step) -> Path:
    """Return the `bin` folder of an environment in which the program is installed."""
    return first_step / PROGRAM.strip("/") / "bin"
