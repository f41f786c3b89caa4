"""A flow that the service does not know: deleted, or only unavailable for a moment.

While the service is being replaced, a gateway in front of it may answer as if the flow did not
exist, so one look proves nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

LOOKS = 3
APART = timedelta(seconds=150)
"""Looks that are closer to each other count as one."""


def looked_in_vain(looks: Sequence[datetime], at: datetime) -> tuple[datetime, ...]:
    """Return the looks in a row that found no flow, including this one."""
    return tuple(looks) if looks and at - looks[-1] < APART else (*looks, at)


def is_deleted(looks: Sequence[datetime]) -> bool:
    """Return True if enough looks in a row found no flow."""
    return len(looks) >= LOOKS
