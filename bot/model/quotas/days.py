"""The day's allowance: any 25 hours, unless the service tells its own day.

When the service's day begins is not documented, and a local day is 25 hours long once a year.
Calls are numbered as they are reserved, so that "how many since" is a difference of two numbers.
Times are seconds since the epoch by the database's clock.
"""

import re
from enum import StrEnum

from bot.dataclass import dataclass
from bot.model.quotas.reported import MOST_DIGITS, ReportedLimits

DAY_SECONDS = 25 * 3600.0
REPORTED_DAY_SECONDS = 24 * 3600.0
# The reset is reported in whole seconds.
_ROUNDING_SECONDS = 1.0
# As large as the minute's limit, and so no day's: none is documented that is so small.
SMALLEST_DAY = 100
_LONGEST_RESET_SECONDS = 90_000  # the 25 hours of the longest day


class DaySource(StrEnum):
    """Where the day's limit in force comes from."""

    PLAN = "plan"
    REPORTED = "reported"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class ReportedDay:
    """What the service reported with the answer of call `number`.

    `unsure` calls were unanswered when that call was reserved: it may or may not count them.
    """

    limit: int
    remaining: int
    resets_at: float
    number: int
    unsure: int

    @property
    def used(self) -> int:
        """Calls of anybody that the service had counted."""
        return self.limit - self.remaining


@dataclass(frozen=True, slots=True)
class DayUse:
    """Calls of the day in force; `resets_at` only where the service reported it."""

    used: int
    limit: int
    source: DaySource
    resets_at: float | None = None


@dataclass(frozen=True, slots=True)
class DayLedger:
    """What is remembered of an organization's calls, as far as its day needs it.

    `made` is the number of the newest call, `made_before` that of the newest one before the day.
    The day begins 25 hours ago, or with a reported reset since then; and as long before as a call
    can go on without an answer, because the service may have counted it that much later. `lowered`
    is the limit that the message of a 45 named.
    """

    made: int
    made_before: int
    reported: ReportedDay | None = None
    lowered: int | None = None


def sane(limits: ReportedLimits) -> bool:
    """If reported numbers mean something: deployments were seen to send zeros on other answers."""
    return (
        limits.limit > SMALLEST_DAY
        and 0 <= limits.remaining <= limits.limit
        and 0 < limits.reset_seconds <= _LONGEST_RESET_SECONDS
    )


def reported_day(
    limits: ReportedLimits, headers_at: float, number: int, unsure: int
) -> ReportedDay | None:
    """The day that the headers of call `number` tell, or None when they tell nonsense."""
    if not sane(limits):
        return None
    resets_at = headers_at + limits.reset_seconds + _ROUNDING_SECONDS
    return ReportedDay(limits.limit, limits.remaining, resets_at, number, unsure)


def day_began_at(reported: ReportedDay | None, now: float) -> float:
    """When the day began that calls count against: 25 hours ago, or with a reset since then."""
    any_day = now - DAY_SECONDS
    if reported is None:
        return any_day
    if now < reported.resets_at:
        return max(any_day, reported.resets_at - REPORTED_DAY_SECONDS)
    return max(any_day, reported.resets_at)


def leaves_day_at(reserved_at: float, hold_seconds: float) -> float:
    """When a call is of no day any more, where nothing was reported."""
    return reserved_at + hold_seconds + DAY_SECONDS


def day_use(ledger: DayLedger, plan_limit: int, now: float) -> DayUse:
    """The day in force: reported by the service while that is fresh, any 25 hours otherwise."""
    reported = ledger.reported
    since = ledger.made - ledger.made_before
    if reported is None or now >= reported.resets_at + REPORTED_DAY_SECONDS:
        return _lowered(DayUse(since, plan_limit, DaySource.PLAN), ledger.lowered)
    if now >= reported.resets_at:
        # A new day has begun and nothing was reported of it yet.
        return _lowered(DayUse(since, reported.limit, DaySource.REPORTED), ledger.lowered)
    used = reported.used + reported.unsure + ledger.made - reported.number
    return _lowered(
        DayUse(used, reported.limit, DaySource.REPORTED, reported.resets_at), ledger.lowered
    )


def _lowered(day: DayUse, lowered: int | None) -> DayUse:
    if lowered is None or lowered >= day.limit:
        return day
    return DayUse(day.used, lowered, DaySource.MESSAGE, day.resets_at)


# Thousands may be separated; a number with a unit of time, or after when, is a duration.
_NUMBER = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:[,.'\u2019 \u00a0\u202f]\d{3})+|\d{1,9})(?![\d.,]*\d)"
    r"(?!\s*(?:s|sec|second|m|min|minute|h|hour|hr)s?\b)",
    re.IGNORECASE,
)
_OF_TIME = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d)?)?|\d\d?:\d\d(?::\d\d)?"
    r"|\b(?:after|in|within|for|wait)\s+\d+",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\blimit\s*(?:of|is|was|:|=)\s*$", re.IGNORECASE)


def limit_in_message(message: str, organization_id: str = "") -> int | None:
    """The limit that the message of a 45 names, as in "exceeded ... of 1,000"; None without one.

    Thousands separators are read. A number after "limit of" is the one; of others the largest is
    taken, and neither the organization's id, a time or a duration, nor one that is too small for a
    day's limit, as a code or an hour is: a lower number read by mistake costs people their calls.
    """
    words = _OF_TIME.sub(" ", message)
    named: list[int] = []
    others: list[int] = []
    for one in _NUMBER.finditer(words):
        number = _limit(one[0])
        if number is not None and str(number) != organization_id:
            (named if _NAMED.search(words[: one.start()]) else others).append(number)
    return max(named or others, default=None)


def _limit(written: str) -> int | None:
    """The number, where a day may have so many calls: more than that are somebody's number."""
    digits = re.sub(r"\D", "", written)
    number = int(digits)
    return number if number > SMALLEST_DAY and len(digits) <= MOST_DIGITS else None
