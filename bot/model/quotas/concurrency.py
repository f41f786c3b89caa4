"""Calls at once: as many as the plan allows, or fewer for a day where the service refused them.

The service calls the ten of a paid plan a soft limit: it may allow fewer, and says how many nowhere
but by a 1070. One that comes while few calls are under way is another client's doing.
"""

from bot.dataclass import dataclass
from bot.model.quotas.plans import Limits, Plan, limits_of

LOWERED_SECONDS = 24 * 3600.0
# Documented for the smallest plan: where the service refuses these, another client has the rest.
LEAST_AT_ONCE = limits_of(Plan.FREE).concurrent


@dataclass(frozen=True, slots=True)
class LoweredConcurrency:
    """No more than `limit` calls at once until then: the service refused one more."""

    limit: int
    until: float

    def binds(self, limits: Limits, now: float) -> bool:
        """Whether it still holds, and is less than a plan's limits."""
        return now < self.until and self.limit < limits.concurrent


def lower_after_refusal(
    known: LoweredConcurrency | None, *, beside: int, used: int, at: float
) -> LoweredConcurrency | None:
    """What a 1070 leaves; None where it tells nothing of the limit.

    `known` is what holds already. `beside` are the calls that were under way when the refused one
    was granted, and `used` the most that were, with that one. Another client may have had a part in
    it: so no less than every plan allows is left, and not for ever.
    """
    if used <= LEAST_AT_ONCE:
        return None
    limit = max(LEAST_AT_ONCE, beside)
    if known is not None:
        limit = min(limit, known.limit)
    return LoweredConcurrency(limit, at + LOWERED_SECONDS)
