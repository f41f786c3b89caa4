"""The jobs about test users, with their limits."""

from functools import partial

from bot.store.job_loop import Kind
from bot.testusers import timers
from bot.testusers.applying import run_changes
from bot.testusers.interactions import INTERACTION, UNDO, run_click
from bot.testusers.parts import Parts
from bot.testusers.work import APPLY, TIMER


def kinds(bot: Parts) -> dict[str, Kind]:
    """Return how each kind of job is run."""
    clicks = partial(run_click, bot)
    return {
        APPLY: Kind(partial(run_changes, bot), at_once=12),
        TIMER: Kind(partial(timers.run_timers, bot), plan=partial(timers.plan, bot)),
        INTERACTION: Kind(clicks, at_once=24),
        UNDO: Kind(clicks, at_once=16),
    }
