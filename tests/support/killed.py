"""Runs the real program and kills it with -9 at a step of its work, then at the next, and so on.

`python -m tests.support.killed FIRST EVERY`: the first process dies at step FIRST after somebody
clicked, the next one EVERY steps later. A step is the moment before or after a commit or an HTTP
call. Each process is named on a line of the output, as `<step> <process id>`. SIGTERM ends it all.
"""

import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bot.__main__ import main
from bot.serve import serve
from bot.store import jobs as job_store
from bot.store.engine import Database, Transaction
from bot.workflows import jobs as job_loop
from bot.workflows.testusers.clicks import Clicks, StoredClick

__all__ = ["serve"]  # imported before the fork, so that a restart takes a moment only


class Death:
    """Counts the steps of this process, once somebody has clicked, and ends it at one of them."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._count = 0
        self._armed = False

    def arm(self) -> None:
        self._armed = True

    def step(self) -> None:
        self._count += self._armed
        if self._count == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def patch(death: Death) -> None:
    """Put the steps around commits and calls, and make leases short."""
    transaction, request, keep = Database.transaction, aiohttp.ClientSession._request, Clicks.keep

    @asynccontextmanager
    async def dying_transaction(self: Database) -> AsyncIterator[Transaction]:
        async with transaction(self) as tx:
            yield tx
            death.step()
        death.step()

    async def dying_request(self: aiohttp.ClientSession, *args: Any, **more: Any) -> Any:
        death.step()
        response = await request(self, *args, **more)
        death.step()
        return response

    async def arming_keep(self: Clicks, click: StoredClick) -> None:
        death.arm()
        await keep(self, click)

    Database.transaction = dying_transaction  # type: ignore[method-assign]
    aiohttp.ClientSession._request = dying_request  # type: ignore[method-assign]
    Clicks.keep = arming_keep  # type: ignore[method-assign]
    job_store.LEASE_SECONDS, job_loop.RENEW_SECONDS, job_loop.POLL_SECONDS = 0.6, 0.2, 0.1


def run(first: int, every: int) -> None:
    """Start one process after the other, until told to stop."""
    child = 0

    def stop(number: int, frame: object) -> None:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        os._exit(0)

    for step in itertools.count(first, every):
        child = os.fork()
        if child == 0:
            patch(Death(step))
            os._exit(main([]))
        signal.signal(signal.SIGTERM, stop)
        sys.stdout.write(f"{step} {child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
