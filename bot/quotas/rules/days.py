"""The daily limit: any 25 hours, unless the service reports its own day.

The start of the service's day is not documented, and a local day lasts 25 hours once a year.
Calls are numbered when reserved, so the calls since a time are the difference of two numbers.
Times are seconds since the epoch by the database's clock.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.services.calls import MOST_DIGITS, ReportedLimits

DAY_SECONDS = 25 * 3600.0
REPORTED_DAY_SECONDS = 24 * 3600.0
# The service reports the reset in whole seconds.
_ROUNDING_SECONDS = 1.0
# Numbers up to this can't be a daily limit: it equals the largest limit of a minute.
SMALLEST_DAY = 100
_LONGEST_RESET_SECONDS = 90_000  # the 25 hours of the longest day


class DaySource(StrEnum):
    """The source of the daily limit in force."""

    PLAN = "plan"
    REPORTED = "reported"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class ReportedDay:
    """The day as the service reported it with the answer to call `number`.

    `unsure` is the number of calls unanswered when that call was reserved; the report may or may
    not include them.
    """

    limit: int
    remaining: int
    resets_at: float
    number: int
    unsure: int

    @property
    def used(self) -> int:
        """Return the calls that the service has counted, by any client."""
        return self.limit - self.remaining


@dataclass(frozen=True, slots=True)
class DayUse:
    """The calls of the day in force; `resets_at` is set only if the service reported it."""

    used: int
    limit: int
    source: DaySource
    resets_at: float | None = None


@dataclass(frozen=True, slots=True)
class DayLedger:
    """The recorded calls of an organization, as far as its day needs them.

    `made` is the number of the newest call, `made_before` of the newest call before the day. The
    day begins 25 hours ago, or at a more recent reported reset, less the longest time that a call
    can go unanswered, because the service may count it that much later. `lowered` is the limit
    named in the message of a 45. `unsent` calls of the day and `unsent_since_report` have numbers
    but never reached the service.
    """

    made: int
    made_before: int
    reported: ReportedDay | None = None
    lowered: int | None = None
    unsent: int = 0
    unsent_since_report: int = 0


def sane(limits: ReportedLimits) -> bool:
    """Return True if the reported numbers make sense: some deployments send zeros."""
    return (
        limits.limit > SMALLEST_DAY
        and 0 <= limits.remaining <= limits.limit
        and 0 < limits.reset_seconds <= _LONGEST_RESET_SECONDS
    )


def reported_day(
    limits: ReportedLimits, headers_at: float, number: int, unsure: int
) -> ReportedDay | None:
    """Return the day that the headers of call `number` report, or None if they make no sense."""
    if not sane(limits):
        return None
    resets_at = headers_at + limits.reset_seconds + _ROUNDING_SECONDS
    return ReportedDay(limits.limit, limits.remaining, resets_at, number, unsure)


def day_began_at(reported: ReportedDay | None, now: float) -> float:
    """Return the start of the day: 25 hours ago, or a more recent reset."""
    any_day = now - DAY_SECONDS
    if reported is None:
        return any_day
    if now < reported.resets_at:
        return max(any_day, reported.resets_at - REPORTED_DAY_SECONDS)
    return max(any_day, reported.resets_at)


def leaves_day_at(reserved_at: float, hold_seconds: float) -> float:
    """Return when a call leaves the day, if the service reported nothing."""
    return reserved_at + hold_seconds + DAY_SECONDS


def day_use(ledger: DayLedger, plan_limit: int, now: float) -> DayUse:
    """Return the day in force: a recent report by the service, otherwise any 25 hours."""
    reported = ledger.reported
    since = ledger.made - ledger.made_before - ledger.unsent
    if reported is None or now >= reported.resets_at + REPORTED_DAY_SECONDS:
        return _lowered(DayUse(since, plan_limit, DaySource.PLAN), ledger.lowered)
    if now >= reported.resets_at:
        # A new day has begun, and the service hasn't reported on it yet.
        return _lowered(DayUse(since, reported.limit, DaySource.REPORTED), ledger.lowered)
    made_since = ledger.made - reported.number - ledger.unsent_since_report
    used = reported.used + reported.unsure + made_since
    return _lowered(
        DayUse(used, reported.limit, DaySource.REPORTED, reported.resets_at), ledger.lowered
    )


def _lowered(day: DayUse, lowered: int | None) -> DayUse:
    if lowered is None or lowered >= day.limit:
        return day
    return DayUse(day.used, lowered, DaySource.MESSAGE, day.resets_at)


# Numbers may have thousands separators; with a unit of time or after "when", they are durations.
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
    """Return the limit that the message of a 45 names, as in "exceeded ... of 1,000", or None.

    Thousands separators are allowed. A number after "limit of" wins; otherwise the largest number
    counts, except the organization's ID, times, durations, and numbers too small for a daily limit,
    such as codes or hours. Reading too low a number would cost people their calls.
    """
    words = _OF_TIME.sub(" ", message)
    named: list[int] = []
    unnamed: list[int] = []
    for match in _NUMBER.finditer(words):
        number = _limit(match[0])
        if number is not None and str(number) != organization_id:
            (named if _NAMED.search(words[: match.start()]) else unnamed).append(number)
    return max(named or unnamed, default=None)


def _limit(written: str) -> int | None:
    """Return the number, unless it is too large for a daily limit."""
    digits = re.sub(r"\D", "", written)
    number = int(digits)
    return number if number > SMALLEST_DAY and len(digits) <= MOST_DIGITS else None
