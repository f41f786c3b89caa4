"""Reads the commands in docs/install.md and runs them in a test's folder."""

import os
import re
import shutil
import subprocess
import tomllib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.needs import needs
from tests.support.postgres import connect, server_url

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/install.md"
SECONDS = 550

# Values that the page cannot know, and folders that a test must not touch. All else runs unchanged.
ADDRESS = "https://git.example.com/gatehouse.git"
PROGRAM = "/opt/gatehouse"
FOLDERS = ("/etc/gatehouse", "/etc/systemd/system", "/var/lib/gatehouse")
LISTENS = "127.0.0.1:3000"

# Programs that would change the machine, or wait for a person.
STAND_INS = {
    "sudo": '[ "$1" = -u ] && shift 2; exec "$@"',
    "sudoedit": 'cat "$EDITED" > "$1"',
    "systemctl": 'echo "$@" >> "$SYSTEMCTL_LOG"',
}


@dataclass(frozen=True)
class Block:
    """A code block on the installation page."""

    step: str
    language: str
    text: str


def blocks(step: str, language: str = "sh") -> list[Block]:
    """Return one step's code blocks in this language."""
    section = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    chosen = next(part for part in section if part.startswith(f"{step}. "))
    found = re.findall(r"^```(\w*)\n(.*?)^```$", chosen, re.MULTILINE | re.DOTALL)
    return [Block(step, kind, text) for kind, text in found if kind == language]


def settings_of(step: str) -> list[dict[str, Any]]:
    """Parse each `toml` block in a step, and return its settings."""
    return [tomllib.loads(block.text) for block in blocks(step, "toml")]


class Machine:
    """Simulates the machine on which Gatehouse is installed.

    Args:
        folder: The folder that represents `/` on the machine.
        program: The folder that contains the installed program and its checkout.
    """

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.filled = {
            ADDRESS: f"{program}/repository/gatehouse",
            PROGRAM: f"{program}{PROGRAM}",
            **{item: f"{folder}{item}" for item in FOLDERS},
        }
        self.systemctl_log = folder / "systemctl.log"
        self.edited = folder / "edited"
        self._here = program / "work"
        self._programs = folder / "programs"
        for place in (self._here, self._programs, *(folder / item[1:] for item in FOLDERS)):
            place.mkdir(parents=True, exist_ok=True)
        if (self._here / "gatehouse").exists():
            self._here /= "gatehouse"
        for name, does in STAND_INS.items():
            stand_in = self._programs / name
            stand_in.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
            stand_in.chmod(0o755)

    def fill(self, text: str) -> str:
        """Replace the addresses and paths in the text with those of this machine."""
        for stands, real in self.filled.items():
            text = text.replace(stands, real)
        return text

    def follow(self, block: Block, environment: dict[str, str] | None = None) -> str:
        """Run a code block as if it had been pasted into a shell. Return the output."""
        script = f"set -eu\n{self.fill(block.text)}"
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-c", script],
            cwd=self._here,
            env=self.environment(environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        told = f"step {block.step}:\n{block.text}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, told
        return done.stdout

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Return the environment variables for a shell on this machine, including `more`."""
        outside = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "LANG"))}
        return {
            **outside,
            "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", "/"),
            # Python compiles what is imported; pip compiles everything, which takes longer. (With
            # PIP_NO_COMPILE=1 it does so all the same.)
            "PIP_COMPILE": "0",
            "TMPDIR": str(self.folder),
            "EDITED": str(self.edited),
            "SYSTEMCTL_LOG": str(self.systemctl_log),
            **(more or {}),
        }


def make_repository(folder: Path) -> Path:
    """Create a repository whose only commit contains the working tree's tracked files."""
    folder.mkdir(parents=True)
    git = shutil.which("git") or "git"
    ask = [git, "ls-files", "-z"]
    listed = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    someone = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([git, *someone, *arguments], cwd=folder, check=True)
    return folder


@asynccontextmanager
async def choice(machine: Machine, kind: str) -> AsyncIterator[dict[str, str]]:
    """Follow installation step 4 for one kind of database, and yield the resulting settings."""
    if kind == "sqlite":
        yield {}
        return
    [block], [told] = blocks("4"), settings_of("4")
    needs("psql")
    admin = await connect(server_url())
    # Other tests use the server too, so the database gets a unique name.
    name = f"gatehouse_page_{uuid.uuid4().hex[:12]}"
    try:
        machine.follow(
            replace(block, text=block.text.replace("gatehouse", name)),
            postgres_environment(server_url()),
        )
        address = urlsplit(server_url()).netloc.rpartition("@")[2]
        url = told["database_url"].replace("gatehouse", name)
        yield {"DATABASE_URL": url.replace("127.0.0.1:5432", address)}
    finally:
        for database in (name, f"{name}_replaced"):
            await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        await admin.execute(f'DROP ROLE IF EXISTS "{name}"')
        await admin.close()


def postgres_environment(server: str) -> dict[str, str]:
    """Return the environment variables that make `psql` connect to the test server."""
    parts = urlsplit(server)
    return {
        "PGHOST": parts.hostname or "",
        "PGPORT": str(parts.port or 5432),
        "PGUSER": parts.username or "",
        "PGPASSWORD": parts.password or "",
        "PGDATABASE": parts.path.strip("/"),
    }
