"""Run the real program, and kill it with -9 at each step of its work in turn.

`python -m tests.support.killed FIRST EVERY`: the first process dies at step FIRST after a person's
click, and each later process EVERY steps later. A step is a commit or a call that changes
something; between steps, nothing outside the process changes. A line of the output names each
process, as `<step> <process id>`. SIGTERM stops the run.
"""

import itertools
import os
import signal
import sys
from datetime import timedelta

import handlers.testusers
from bot.__main__ import main
from bot.serve import serve
from bot.testusers import interactions
from bot.testusers.interactions import StoredInteraction
from bot.testusers.parts import Parts
from bot.testusers.rules import applying
from tests.support.launch import Steps, count_calls, count_commits, shorten_leases

__all__ = ["serve"]  # imported before the fork, so that a restart takes a moment only


def patch(steps: Steps) -> None:
    """Count the steps from the first click, and shorten leases and doubt."""
    store = interactions.store_click

    async def arming_store(bot: Parts, click: StoredInteraction) -> None:
        steps.arm()
        await store(bot, click)

    handlers.testusers.store_click = arming_store  # type: ignore[attr-defined]
    count_commits(steps)
    count_calls(steps)
    # A run that gets no processor for longer than its lease starts again, and may never end.
    shorten_leases()
    # A death between the note of a POST and its answer leaves the flow in doubt for this time.
    applying.IN_DOUBT = timedelta(seconds=4)


def run(first: int, every: int) -> None:
    """Start processes one after the other until SIGTERM."""
    # A SIGTERM during the fork would go to the dead process and be lost.
    signals = {signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    for step in itertools.count(first, every):
        child = os.fork()
        if child == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            patch(Steps(step))
            os._exit(main([]))
        sys.stdout.write(f"{step} {child}\n")
        sys.stdout.flush()
        is_stopped = signal.sigwait(signals) == signal.SIGTERM
        if is_stopped:
            os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        if is_stopped:
            os._exit(0)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
