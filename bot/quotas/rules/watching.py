"""Picks the watcher's next check, spread over the day and within 1 % of each daily limit.

Each check transfers the whole listing of a data center, so large listings make checks rarer.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bot.organizations.rules import OrganizationKey

_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
MOST_OVERDUE = 2.0
# For all data centers together: less than 1 GB a day, including listings for people.
_MOST_BYTES_A_DAY = 800_000_000


@dataclass(frozen=True, slots=True)
class Watched:
    """An organization, the time of its last check (0: never), and the minimum interval."""

    key: OrganizationKey
    checked_at: float
    every_seconds: float

    @property
    def due_at(self) -> float:
        """Return the time of the next check."""
        return self.checked_at + self.every_seconds


def seconds_between_checks(day_limit: int, bytes_a_round: int, data_centers: int) -> float:
    """Return an organization's minimum time between two checks.

    `bytes_a_round` is the number of bytes transferred by checking every organization of its data
    center once. Each data center gets an equal part of the bytes for a day.
    """
    checks_a_day = day_limit * _SHARE_OF_THE_DAY
    if checks_a_day <= 0:
        return float("inf")
    rounds_a_day = _MOST_BYTES_A_DAY / data_centers / max(1, bytes_a_round)
    return _DAY_SECONDS / min(checks_a_day, rounds_a_day)


def next_check(watched: Collection[Watched], now: float) -> Watched | None:
    """Return the organization that is most overdue relative to its interval, if any is due."""

    def urgency(each: Watched) -> tuple[float, float, OrganizationKey]:
        # Limited, so that many new organizations with long intervals don't delay the others.
        overdue = min(MOST_OVERDUE, (now - each.checked_at) / each.every_seconds)
        return overdue, -each.every_seconds, each.key

    return max((each for each in watched if now >= each.due_at), key=urgency, default=None)


def next_turn_at(watched: Collection[Watched], now: float) -> float | None:
    """Return when to look for the next due check; None if there are no organizations.

    Checks that are due together, such as after a start, are spread at twice the usual pace and at
    least a few seconds apart.
    """
    checks_a_second = sum(1 / organization.every_seconds for organization in watched)
    if checks_a_second <= 0:
        return None
    due_at = min(organization.due_at for organization in watched)
    return max(due_at, now + max(0.5 / checks_a_second, LEAST_PAUSE_SECONDS))
