"""A flow that the service does not know: deleted, or only out of sight for a moment.

A gateway in front of the service answers as if there were no flow while what is behind it is
replaced, so one look proves nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

LOOKS = 3
APART = timedelta(seconds=150)
"""Looks that are closer to each other count as one."""


def looked_in_vain(looks: Sequence[datetime], at: datetime) -> tuple[datetime, ...]:
    """The looks in a row that found no flow, with one more."""
    return tuple(looks) if looks and at - looks[-1] < APART else (*looks, at)


def is_deleted(looks: Sequence[datetime]) -> bool:
    """Whether so many looks found no flow that there is none any more."""
    return len(looks) >= LOOKS
