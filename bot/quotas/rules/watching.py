"""Picks the watcher's next check: evenly over the day, with at most 1 % of each daily limit.

Each check transfers the whole listing of a data center, so large listings make checks rarer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from bot.organizations.rules import OrganizationKey

_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# For all data centers together: less than a gigabyte a day, including listings for people.
_MOST_BYTES_A_DAY = 800_000_000


@dataclass(frozen=True, slots=True)
class Watched:
    """An organization, the daily limit in force, and its last check (0 if never)."""

    key: OrganizationKey
    day_limit: int
    checked_at: float

    @property
    def every_seconds(self) -> float:
        """Return the minimum time between two checks."""
        checks_a_day = self.day_limit * _SHARE_OF_THE_DAY
        return _DAY_SECONDS / checks_a_day if checks_a_day > 0 else float("inf")

    def postpone(self, until: float, now: float) -> "Watched":
        """Return a copy whose next check is at `until`, or at its usual time if that is earlier."""
        return replace(self, checked_at=min(now, until - self.every_seconds))


def pauses(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the minimum seconds between checks in each data center, given its listing's bytes.

    Each data center gets an equal part of the day's bytes, so a large one doesn't delay the others.
    """
    bytes_a_second = _MOST_BYTES_A_DAY / _DAY_SECONDS / max(1, len(sizes))
    return {center: size / bytes_a_second for center, size in sizes.items()}


def next_check(
    watched: Collection[Watched], pauses: Mapping[str, float], now: float
) -> OrganizationKey | None:
    """Return the organization that is most overdue relative to its interval, if any is due."""
    ready_at = _ready_at(watched, pauses)
    due = [
        organization
        for organization in watched
        if now - organization.checked_at >= organization.every_seconds
        and now >= ready_at[organization.key.data_center]
    ]
    worst = max(
        due,
        key=lambda organization: (
            (now - organization.checked_at) / organization.every_seconds,
            organization.key,
        ),
        default=None,
    )
    return worst.key if worst else None


def next_turn_at(
    watched: Collection[Watched], pauses: Mapping[str, float], now: float
) -> float | None:
    """Return when to look for the next due check; None if there is nobody to check.

    Checks that are due together, as after a start, are spread at twice the usual pace and at least
    a few seconds apart.
    """
    checks_a_second = sum(1 / organization.every_seconds for organization in watched)
    if checks_a_second <= 0:
        return None
    ready_at = _ready_at(watched, pauses)
    due_at = min(
        max(
            organization.checked_at + organization.every_seconds,
            ready_at[organization.key.data_center],
        )
        for organization in watched
    )
    return max(due_at, now + max(0.5 / checks_a_second, LEAST_PAUSE_SECONDS))


def _ready_at(watched: Collection[Watched], pauses: Mapping[str, float]) -> dict[str, float]:
    last: dict[str, float] = {}
    for organization in watched:
        center = organization.key.data_center
        last[center] = max(last.get(center, organization.checked_at), organization.checked_at)
    return {center: at + pauses.get(center, 0.0) for center, at in last.items()}
