"""Plans of the inventory service, and limits that a 429 lowers for a while.

The numbers are those of the specification, area B, "Limits".

Concurrency: the service calls the ten of a paid plan a soft limit. It may allow fewer, which only
a 1070 reveals. A 1070 with few calls in flight is caused by another client.

Minute: a 44 below the bot's own limit means that another client used the rest. Background calls
then use less than the bot had used at that moment, so that both fit.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Plan(StrEnum):
    """The plans, as written in settings and commands."""

    FREE = "free"
    STANDARD = "standard"
    PROFESSIONAL = "professional"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


class CallClass(StrEnum):
    """The caller: a person, the background, or the single call at the end of a pause."""

    PERSON = "person"
    BACKGROUND = "background"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Reserve:
    """Calls that Gatehouse leaves to other programs of the organization."""

    minute: int = 0
    day: int = 0


NO_RESERVE = Reserve()


@dataclass(frozen=True, slots=True)
class Limits:
    """Calls allowed in a minute, in a day, and at the same time.

    `background_minute` is set while the background has less than its four fifths of the minute.
    """

    minute: int
    day: int
    concurrent: int
    background_minute: int | None = None

    def without(self, reserve: Reserve) -> "Limits":
        """Subtract the calls reserved for other programs; at least one always remains."""
        minute, day = self.minute - reserve.minute, self.day - reserve.day
        return replace(self, minute=max(1, minute), day=max(1, day))

    def left_to(self, call_class: CallClass) -> "Limits":
        """Return the limits of a class: the background leaves a fifth of everything to people."""
        if call_class is not CallClass.BACKGROUND:
            return self
        minute = _four_fifths(self.minute)
        if self.background_minute is not None:
            minute = min(minute, self.background_minute)
        return Limits(minute, _four_fifths(self.day), _four_fifths(self.concurrent))

    def share(self, share: float) -> "Limits":
        """Return a client's share, above 0 and up to 1, of the background's limits."""
        left = self.left_to(CallClass.BACKGROUND)
        parts = (left.minute, left.day, left.concurrent)
        return Limits(*(max(1, int(limit * share)) for limit in parts))


def _four_fifths(limit: int) -> int:
    # Rounded down, so that people get a fifth of five as well: one call.
    return limit * 4 // 5


_MINUTE = 100
# The part of the minute that one person may use, if people are limited.
MINUTE_OF_ONE_PERSON = _MINUTE // 2
_LIMITS = {
    Plan.FREE: Limits(_MINUTE, 1_000, 5),
    Plan.STANDARD: Limits(_MINUTE, 2_000, 10),
    Plan.PROFESSIONAL: Limits(_MINUTE, 5_000, 10),
    Plan.PREMIUM: Limits(_MINUTE, 10_000, 10),
    Plan.ENTERPRISE: Limits(_MINUTE, 10_000, 10),
}


def limits_of(plan: Plan) -> Limits:
    """Return the documented limits of a plan."""
    return _LIMITS[plan]


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
