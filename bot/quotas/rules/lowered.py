"""Limits that a 429 lowers for a while, because other programs use the rest.

Concurrency: the service calls the ten of a paid plan a soft limit. It may allow fewer, which only
a 1070 reveals. A 1070 with few calls in flight is caused by another client.

Minute: a 44 below the bot's own limit means that another client used the rest. Background calls
then use less than the bot had used at that moment, so that both fit.
"""

from dataclasses import dataclass

from bot.quotas.rules.plans import Plan, limits_of

CONCURRENCY_SECONDS = 24 * 3600.0
MINUTE_SECONDS = 3600.0
# Room for variation in the other client's use.
MINUTE_MARGIN = 8
# Fewer would stop background calls, although the other client may pause at any time.
LEAST_A_MINUTE = 4
# The smallest plan's documented limit: if the service refuses it, another client has the rest.
LEAST_AT_ONCE = limits_of(Plan.FREE).concurrent


@dataclass(frozen=True, slots=True)
class Lowered:
    """A limit of `limit` calls until the given time."""

    limit: int
    until: float

    def binds(self, usual: int, now: float) -> bool:
        """Return True if the limit is in force and below the usual limit."""
        return now < self.until and self.limit < usual


def lower_concurrency(
    known: Lowered | None, *, beside: int, used: int, at: float
) -> Lowered | None:
    """Return the limit after a 1070; None if the 1070 says nothing about the limit.

    `known` is the lowered limit in force. `beside` is the number of calls in flight when the
    refused call was granted, `used` the highest number, including the refused call. Another client
    may have contributed, so the limit never drops below that of every plan, and expires.
    """
    if used <= LEAST_AT_ONCE:
        return None
    limit = max(LEAST_AT_ONCE, beside)
    if known is not None:
        limit = min(limit, known.limit)
    return Lowered(limit, at + CONCURRENCY_SECONDS)


def lower_minute(known: Lowered | None, *, used: int, at: float) -> Lowered:
    """Return the background's limit after a 44 when the bot had used `used` calls."""
    limit = max(LEAST_A_MINUTE, used - MINUTE_MARGIN)
    if known is not None:
        limit = min(limit, known.limit)
    return Lowered(limit, at + MINUTE_SECONDS)
