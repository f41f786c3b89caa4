"""Whom the watcher checks next: evenly over the day, with 1 % of each daily limit at most."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.model.organization import OrganizationKey

_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Watched:
    """An organization, the day's limit in force, and its last check (0 when there was none)."""

    key: OrganizationKey
    day_limit: int
    checked_at: float

    @property
    def every_seconds(self) -> float:
        """The shortest time from one check to the next."""
        checks_a_day = self.day_limit * _SHARE_OF_THE_DAY
        return _DAY_SECONDS / checks_a_day if checks_a_day > 0 else float("inf")

    def put_off(self, until: float, now: float) -> "Watched":
        """The same with its next check due at `until`, or in its usual time if that is sooner."""
        return replace(self, checked_at=min(now, until - self.every_seconds))


def next_check(watched: Iterable[Watched], now: float) -> OrganizationKey | None:
    """The organization whose check is due for the longest part of its turn, if any is due."""
    due = [one for one in watched if now - one.checked_at >= one.every_seconds]
    worst = max(
        due, key=lambda one: ((now - one.checked_at) / one.every_seconds, one.key), default=None
    )
    return worst.key if worst else None


def next_turn_at(watched: Sequence[Watched], now: float) -> float | None:
    """When to look again whose check is due; None where there is nobody to check.

    That is when the next one is due, but not at once after this one: where many are due, as after
    a start, their checks are spread at twice the usual pace, and a few seconds apart at the least:
    each brings a whole listing along.
    """
    checks_a_second = sum(1 / one.every_seconds for one in watched)
    if checks_a_second <= 0:
        return None
    due_at = min(one.checked_at + one.every_seconds for one in watched)
    return max(due_at, now + max(0.5 / checks_a_second, LEAST_PAUSE_SECONDS))
