"""Whom the watcher checks next: evenly over the day, with 1 % of each daily limit at most.

Each check brings the whole listing of a data center along, so large listings make checks rarer.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey

_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# Of all data centers together: less than a gigabyte, with the listings that people ask for.
_MOST_BYTES_A_DAY = 800_000_000


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

    def postpone(self, until: float, now: float) -> "Watched":
        """The same with its next check due at `until`, or in its usual time if that is sooner."""
        return replace(self, checked_at=min(now, until - self.every_seconds))


def pauses(sizes: Mapping[str, int]) -> dict[str, float]:
    """The least seconds between two checks in a data center, by the bytes of its listing.

    Each data center has an equal part of the day's bytes, so that a large one delays no other.
    """
    bytes_a_second = _MOST_BYTES_A_DAY / _DAY_SECONDS / max(1, len(sizes))
    return {center: size / bytes_a_second for center, size in sizes.items()}


def next_check(
    watched: Collection[Watched], pauses: Mapping[str, float], now: float
) -> OrganizationKey | None:
    """The organization whose check is due for the longest part of its turn, if any is due."""
    ready_at = _ready_at(watched, pauses)
    due = [
        one
        for one in watched
        if now - one.checked_at >= one.every_seconds and now >= ready_at[one.key.data_center]
    ]
    worst = max(
        due, key=lambda one: ((now - one.checked_at) / one.every_seconds, one.key), default=None
    )
    return worst.key if worst else None


def next_turn_at(
    watched: Collection[Watched], pauses: Mapping[str, float], now: float
) -> float | None:
    """When to look again whose check is due; None where there is nobody to check.

    That is when the next one is due, but not at once after this one: where many are due, as after
    a start, their checks are spread at twice the usual pace, and a few seconds apart at the least.
    """
    checks_a_second = sum(1 / one.every_seconds for one in watched)
    if checks_a_second <= 0:
        return None
    ready_at = _ready_at(watched, pauses)
    due_at = min(
        max(one.checked_at + one.every_seconds, ready_at[one.key.data_center]) for one in watched
    )
    return max(due_at, now + max(0.5 / checks_a_second, LEAST_PAUSE_SECONDS))


def _ready_at(watched: Collection[Watched], pauses: Mapping[str, float]) -> dict[str, float]:
    """When each data center may be called again."""
    last: dict[str, float] = {}
    for one in watched:
        center = one.key.data_center
        last[center] = max(last.get(center, one.checked_at), one.checked_at)
    return {center: at + pauses.get(center, 0.0) for center, at in last.items()}
