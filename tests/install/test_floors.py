"""Where Gatehouse can be installed: the locked packages, with their hashes, for each of these."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.__main__ import main
from tests.support.needs import needs_package_index

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PYTHONS = ["3.11", "3.12", "3.13"]
# Debian and its like; Alpine; the same on ARM; a developer's Mac.
PLATFORMS = [
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
]


def find_interpreter(python: str) -> str | None:
    """Return an interpreter of that version: one that pyenv made, or else one in PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    # pyenv puts a program into PATH for every version, which fails for those that are not chosen.
    made = sorted(pyenv.glob(f"versions/{python}.*/bin/python"))
    return str(made[-1]) if made else shutil.which(f"python{python}")


INTERPRETERS = {python: path for python in PYTHONS if (path := find_interpreter(python))}
ARE_THERE = "import bot.app, bot.serve, handlers, sandbox.launch; print('all of it')"
# Of the development lock, what these tests need.
TEST_TOOLS = {
    *("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis"),
    *("iniconfig", "packaging", "pluggy", "pygments", "sortedcontainers"),
}
# What differs from one Python to the next does so at the first examples.
FAST = ("tests/model", "-m", "not slow", "--hypothesis-profile", "few")


def uv(*arguments: str | Path) -> str:
    """Run uv, which is a development dependency, and return what it said."""
    needs_package_index()
    done = subprocess.run(
        [Path(sys.executable).with_name("uv"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def install(folder: Path, python: str, *more: str, lock: Path = ROOT / "requirements.txt") -> str:
    """Install a lock into a folder, for that Python: wheels only, hashes compared."""
    return uv(
        *("pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--target", folder, "--python-version", python, *more),
        *("-r", lock),
    )


def lock_of_test_tools(path: Path) -> Path:
    """Write the part of the development lock that runs these tests."""
    entries = re.split(r"(?m)^(?=[a-z])", (ROOT / "requirements-dev.txt").read_text())
    kept = [entry for entry in entries if entry.partition("==")[0] in TEST_TOOLS]
    assert len(kept) == len(TEST_TOOLS)
    path.write_text("".join(kept))
    return path


@pytest.mark.parametrize("python", [PYTHONS[0], PYTHONS[-1]])
def test_lock_has_wheels_for_every_platform(tmp_path, python):
    for platform in PLATFORMS:
        assert "+ aiohttp==" in install(
            tmp_path, python, "--python-platform", platform, "--dry-run"
        )


@pytest.mark.skipif(len(INTERPRETERS) == 0, reason="needs another Python")
def test_program_and_fast_tests_run_on_the_newest_python(tmp_path):
    """`make check` runs them on the oldest."""
    python, interpreter = list(INTERPRETERS.items())[-1]
    packages = tmp_path / "packages"
    install(packages, python)
    done = run_by(interpreter, packages, "-W", "error", "-c", ARE_THERE)
    assert done.stdout == "all of it\n", done.stderr
    install(packages, python, lock=lock_of_test_tools(tmp_path / "tools.txt"))
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *FAST)
    done = run_by(interpreter, packages, *tests)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


def run_by(interpreter: str, packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in the checkout with those packages and nothing else of the environment."""
    return subprocess.run(
        [interpreter, *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(packages), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )


@pytest.mark.parametrize("arguments", [[], ["check"], ["sandbox"], ["--version"]])
def test_windows_is_refused_with_a_sentence(monkeypatch, capsys, arguments):
    monkeypatch.setattr("sys.platform", "win32")
    assert main(arguments) == 2
    assert capsys.readouterr().err == "Gatehouse does not run on Windows. Use WSL.\n"
