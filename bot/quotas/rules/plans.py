"""Inventory service plans, and limits that a 429 lowers temporarily.

The numbers come from the specification, area B, "Limits".

Concurrency: the ten calls of a paid plan are a soft limit. The service may allow fewer, which only
a 1070 reveals. A 1070 with few calls in flight is caused by another client.

Minute: a 44 below the bot's own limit means that another client used the rest. For a while,
background calls use less than the bot had used by then, so that both fit.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Plan(StrEnum):
    """Plan names, as written in settings and commands."""

    FREE = "free"
    STANDARD = "standard"
    PROFESSIONAL = "professional"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


class CallClass(StrEnum):
    """The kind of caller: a person, a background task, or the probe at the end of a pause."""

    PERSON = "person"
    BACKGROUND = "background"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Reserve:
    """Calls that Gatehouse leaves to the organization's other programs."""

    minute: int = 0
    day: int = 0


NO_RESERVE = Reserve()


@dataclass(frozen=True, slots=True)
class Limits:
    """Calls allowed per minute, per day, and at the same time.

    `background_minute` is set while background calls get less than four fifths of the minute limit.
    """

    minute: int
    day: int
    concurrent: int
    background_minute: int | None = None

    def without(self, reserve: Reserve) -> "Limits":
        """Subtract the calls reserved for other programs; at least one call always remains."""
        minute, day = self.minute - reserve.minute, self.day - reserve.day
        return replace(self, minute=max(1, minute), day=max(1, day))

    def left_to(self, call_class: CallClass) -> "Limits":
        """Return the limits for a class; background calls leave a fifth of each limit to people."""
        if call_class is not CallClass.BACKGROUND:
            return self
        minute = _four_fifths(self.minute)
        if self.background_minute is not None:
            minute = min(minute, self.background_minute)
        return Limits(minute, _four_fifths(self.day), _four_fifths(self.concurrent))

    def share(self, share: float) -> "Limits":
        """Return a client's share (above 0, up to 1) of the background limits."""
        left = self.left_to(CallClass.BACKGROUND)
        parts = (left.minute, left.day, left.concurrent)
        return Limits(*(max(1, int(limit * share)) for limit in parts))


def _four_fifths(limit: int) -> int:
    # Round down, so that people get one of five calls too.
    return limit * 4 // 5


_MINUTE = 100
# The part of the minute limit that each person may use, if people are limited.
MINUTE_OF_ONE_PERSON = _MINUTE // 2
_LIMITS = {
    Plan.FREE: Limits(_MINUTE, 1_000, 5),
    Plan.STANDARD: Limits(_MINUTE, 2_000, 10),
    Plan.PROFESSIONAL: Limits(_MINUTE, 5_000, 10),
    Plan.PREMIUM: Limits(_MINUTE, 10_000, 10),
    Plan.ENTERPRISE: Limits(_MINUTE, 10_000, 10),
}


def limits_of(plan: Plan) -> Limits:
    """Return a plan's documented limits."""
    return _LIMITS[plan]


CONCURRENCY_SECONDS = 24 * 3600.0
MINUTE_SECONDS = 3600.0
# Allows for variation in the other client's use.
MINUTE_MARGIN = 8
# A lower limit would stop background calls, although the other client may pause at any time.
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
    """Return the limit after a 1070; None if the 1070 doesn't reveal a limit.

    `known` is the current lowered limit. `beside` is the number of calls in flight when the refused
    call was granted; `used` is the highest number, including the refused call. Another client may
    have contributed, so the limit expires and is never lower than the smallest plan's.
    """
    if used <= LEAST_AT_ONCE:
        return None
    limit = max(LEAST_AT_ONCE, beside)
    if known is not None:
        limit = min(limit, known.limit)
    return Lowered(limit, at + CONCURRENCY_SECONDS)


def lower_minute(known: Lowered | None, *, used: int, at: float) -> Lowered:
    """Return the limit for background calls after a 44 when the bot had used `used` calls."""
    limit = max(LEAST_A_MINUTE, used - MINUTE_MARGIN)
    if known is not None:
        limit = min(limit, known.limit)
    return Lowered(limit, at + MINUTE_SECONDS)
