"""Runs the real program again and again, and kills it at a later step each time.

Start this program with `python -m tests.support.killed FIRST EVERY`.

Each process counts steps from the first click on a button. The first process is killed at step
FIRST, and each new process is killed EVERY steps later than the previous one. A step is a commit or
an API call that changes something. Between steps, nothing outside the process changes. For each
process, the program prints a line in the form `<step> <process ID>`. SIGTERM stops the run.
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

__all__ = ["serve"]  # imported before the fork to make restarts fast


def patch(steps: Steps) -> None:
    """Start counting steps at the first click, and shorten the bot's waiting times."""
    store = interactions.store_click

    async def arming_store(bot: Parts, click: StoredInteraction) -> None:
        steps.arm()
        await store(bot, click)

    handlers.testusers.store_click = arming_store  # type: ignore[attr-defined]
    count_commits(steps)
    count_calls(steps)
    # If a job gets no CPU for longer than its lease, it starts over, and may never finish.
    shorten_leases()
    # If the process dies between recording a POST and its response, the flow is in doubt this long.
    applying.IN_DOUBT = timedelta(seconds=4)


def run(first: int, every: int) -> None:
    """Start one process after another until SIGTERM arrives."""
    # A SIGTERM during the fork would otherwise be lost.
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
