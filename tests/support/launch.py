"""Starts the real program, and injects faults into it.

    python -m tests.support.launch OPTIONS

`--clock FILE` shifts the wall clock by the number of seconds in FILE. Tests may change the
number in FILE at any time.

`--short-leases` lets other processes take over a dead process's work after two seconds.

`--short-ending` lets work in progress take one second when the program stops, instead of six.

`--die-at N` kills the program with SIGKILL right after step N. The first SIGUSR1 signal starts the
count of steps.

A step is a commit or an API call that changes something. For each step, the program prints a
line in the form `{"step": …}`. The faults are injected without changing the program's files.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from sqlalchemy import text

from bot import serve
from bot.__main__ import main
from bot.store import job_loop
from bot.store import jobs as job_store
from bot.store.engine import Database, Transaction

CHANGES = {
    "sqlite": "SELECT total_changes()",
    "postgresql": "SELECT CAST(pg_current_xact_id_if_assigned() AS text)",
}


class Steps:
    """Counts and prints steps, and kills the process at step `die_at`."""

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self._count = 0
        self._is_armed = False

    def arm(self, *_: object) -> None:
        """Start counting."""
        self._is_armed = True

    def took(self, what: str) -> None:
        """Count a step."""
        if not self._is_armed:
            return
        self._count += 1
        job = str(structlog.contextvars.get_contextvars().get("job", "")).partition(":")[0]
        line = json.dumps({"step": self._count, "what": what, "job": job}) + "\n"
        os.write(2, line.encode())
        if self._count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def count_commits(steps: Steps) -> None:
    """Count a step for each commit that changes something."""
    honest = Database.transaction

    @asynccontextmanager
    async def transaction(self: Database) -> AsyncIterator[Transaction]:
        async with honest(self) as tx:
            changes = text(CHANGES[tx.connection.dialect.name])
            before = await tx.connection.scalar(changes)
            yield tx
            # A statement that was sent together with the commit has changed something.
            is_changed = tx.is_ending or await tx.connection.scalar(changes) != before
        if is_changed:
            steps.took("commit")

    Database.transaction = transaction  # type: ignore[method-assign]


def count_calls(steps: Steps) -> None:
    """When the response to an API call that changes something arrives, count a step."""
    honest = aiohttp.ClientSession._request

    async def request(self: aiohttp.ClientSession, method: str, url: Any, **rest: Any) -> Any:
        answer = await honest(self, method, url, **rest)
        if method.upper() != "GET":
            steps.took(urlsplit(str(url)).path.strip("/").partition("/")[2])
        return answer

    aiohttp.ClientSession._request = request  # type: ignore[method-assign,assignment]


def shift_clock(file: Path) -> None:
    """Shift `time.time` by the number of seconds in the file."""
    honest = time.time

    def shifted() -> float:
        with suppress(OSError, ValueError):
            return honest() + float(file.read_text())
        return honest()

    time.time = shifted


def shorten_leases() -> None:
    """Let other processes take over a dead process's work after two seconds."""
    job_store.LEASE_SECONDS, job_loop.RENEW_SECONDS, job_loop.POLL_SECONDS = 2.0, 0.3, 0.1


def launch() -> int:
    """Read the arguments, inject the faults, and run the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clock", type=Path)
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--short-leases", action="store_true")
    parser.add_argument("--short-ending", action="store_true")
    options = parser.parse_args()
    if options.clock:
        shift_clock(options.clock)
    if options.short_leases:
        shorten_leases()
    if options.short_ending:
        serve.FINISH_SECONDS = 1.0
    if options.die_at is not None:
        steps = Steps(options.die_at)
        signal.signal(signal.SIGUSR1, steps.arm)
        count_commits(steps)
        count_calls(steps)
    return main([])


if __name__ == "__main__":
    sys.exit(launch())
