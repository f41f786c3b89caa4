"""Test that the locked packages can be installed on all supported platforms."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.needs import needs_package_index

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# Debian and similar systems; Alpine; both on ARM; a developer's Mac.
PLATFORMS = [
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
]


def find_interpreter(python: str) -> str | None:
    """Look for this Python version in pyenv, and then in PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    # pyenv has a program in PATH for each version, which fails if the version is not selected.
    made = sorted(pyenv.glob(f"versions/{python}.*/bin/python"))
    return str(made[-1]) if made else shutil.which(f"python{python}")


INTERPRETERS = {python: path for python in PYTHONS if (path := find_interpreter(python))}
ARE_THERE = "import bot.app, bot.serve, handlers, sandbox.launch; print('all of it')"


def uv(*arguments: str | Path) -> str:
    """Run `uv`, and return its output."""
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


def install(*where: str | Path) -> str:
    """Install the locked packages from wheels, and check their hashes."""
    return uv(
        *("pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:", *where),
        *("-r", ROOT / "requirements.txt"),
    )


@pytest.mark.parametrize("python", [PYTHONS[0], PYTHONS[-1]])
def test_lock_has_wheels_for_every_platform(tmp_path, python):
    where = ("--target", tmp_path, "--python-version", python, "--dry-run", "--python-platform")
    for platform in PLATFORMS:
        assert "+ aiohttp==" in install(*where, platform)


@pytest.mark.skipif(len(INTERPRETERS) == 0, reason="needs another Python")
def test_program_runs_on_the_newest_python(tmp_path):
    """`make check` runs the tests on the oldest supported Python."""
    uv("venv", "--python", list(INTERPRETERS.values())[-1], tmp_path / "environment")
    python = tmp_path / "environment/bin/python"
    install("--python", python)
    # All three processes share the compiled modules.
    caches = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    options: dict[str, Any] = {
        "cwd": ROOT,
        "env": caches,
        "text": True,
        "stdout": subprocess.PIPE,
    }
    imported = subprocess.run([python, "-W", "error", "-c", ARE_THERE], **options, check=True)
    assert imported.stdout == "all of it\n"
    with subprocess.Popen([python, "-m", "sandbox", "--port", "0"], **options) as sandbox:
        assert sandbox.stdout is not None
        # The sandbox prints this when the bot is ready.
        assert sandbox.stdout.readline().startswith("Gatehouse is at http://")
        sandbox.send_signal(signal.SIGINT)
    assert sandbox.returncode == 0
