"""Runs the backup and restore commands from docs/operations.md."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.needs import needs_gnu_chown

ROOT = Path(__file__).parents[2]
SUDO = '#!/bin/sh\n[ "$1" = -u ] && shift 2\nexec "$@"\n'


def section() -> str:
    """Return the section about backups from docs/operations.md."""
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    return page.split("\n## Back up and restore\n")[1].split("\n## ")[0]


def commands(database: str) -> tuple[str, str]:
    """Return the shell commands that back up a database, and those that restore it.

    `database` is "SQLite" or "PostgreSQL".
    """
    part = section().split(f"### {database}\n")[1].split("\n### ")[0]
    backup, restore = re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return backup, restore


def restore_of(name: str) -> str:
    """Return the commands that restore a PostgreSQL database called `name`."""
    restore = commands("PostgreSQL")[1]
    return restore.replace("gatehouse", name).replace(f"{name}.dump", "gatehouse.dump")


def run(script: str, folder: Path, settings: Mapping[str, str]) -> None:
    """Run commands in a folder, as if someone had pasted them into a shell."""
    if "chown --reference" in script:
        needs_gnu_chown()
    gatehouse = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m bot "$@"\n'
    with tempfile.TemporaryDirectory() as programs:
        for name, content in {"sudo": SUDO, "gatehouse": gatehouse}.items():
            program = Path(programs) / name
            program.write_text(content, "utf-8")
            program.chmod(0o755)
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-euc", script],
            cwd=folder,
            env={**settings, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
