"""The limits of each plan, usage in the current day, and limits that are lowered after a 429.

The numbers come from "Limits" in area B of the specification. Times are Unix timestamps from the
database's clock. The service doesn't say when its day begins, so a day is a sliding window of 25
hours, unless the service reports when the day's limit resets. Calls are numbered when they are
reserved, so the number of calls in a period is the difference between two call numbers.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.services.calls import MOST_DIGITS, CallClass, ReportedLimits


class Plan(StrEnum):
    """The service's plans, with the names used in settings and commands."""

    FREE = "free"
    STANDARD = "standard"
    PROFESSIONAL = "professional"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


class LimitKind(StrEnum):
    """The kinds of limits: calls per minute, calls per day, and concurrent calls."""

    MINUTE = "minute"
    DAY = "day"
    CONCURRENT = "concurrent"

    @property
    def in_words(self) -> str:
        """The limit's label: `minute`, `day` or `at once`."""
        return "at once" if self is LimitKind.CONCURRENT else self.value

    @property
    def unit(self) -> str:
        """The words that follow a number of calls: `per minute`, `per day` or `at once`."""
        return self.in_words if self is LimitKind.CONCURRENT else f"per {self.value}"


@dataclass(frozen=True)
class Limits:
    """The number of calls allowed per minute, per day, and at the same time.

    `background_minute` is the temporary minute limit for background calls, if there is one.
    """

    minute: int
    day: int
    concurrent: int
    background_minute: int | None = None

    def left_to(self, call_class: CallClass) -> "Limits":
        """Return the limits for a class of calls. Background calls leave a fifth for people."""
        if call_class is not CallClass.BACKGROUND:
            return self
        # Round down for people's sake, but leave the background at least one call.
        minute, day, concurrent = (
            max(1, limit * 4 // 5) for limit in (self.minute, self.day, self.concurrent)
        )
        if self.background_minute is not None:
            minute = min(minute, self.background_minute)
        return Limits(minute, day, concurrent)

    def share(self, share: float) -> "Limits":
        """Return a share of the background limits. `share` is greater than 0 and at most 1."""
        left = self.left_to(CallClass.BACKGROUND)
        parts = (left.minute, left.day, left.concurrent)
        return Limits(*(max(1, int(limit * share)) for limit in parts))


_MINUTE = 100
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


_LOWERED_CONCURRENCY_SECONDS = 24 * 3600.0
_LOWERED_MINUTE_SECONDS = 3600.0
# Allows for variation in the usage by other clients.
MINUTE_MARGIN = 8
# Allow at least this many background calls, because other clients may stop at any time.
LEAST_A_MINUTE = 4
# The smallest plan's documented limit. If fewer calls than this exceed the service's limit, other
# clients are making calls too.
LEAST_AT_ONCE = limits_of(Plan.FREE).concurrent


@dataclass(frozen=True)
class Lowered:
    """A temporary limit of `limit` calls, which applies until the time `until`."""

    limit: int
    until: float


def lower_concurrency(
    known: Lowered | None, *, beside: int, used: int, at: float
) -> Lowered | None:
    """Return the concurrency limit to apply after code 1070, or None to keep the current limit.

    `beside` is the number of calls that were running when the refused call was granted. `used` is
    the highest number of running calls, including the refused call. Other clients' calls may have
    contributed, so the new limit is temporary and never below the smallest plan's limit.
    """
    if used <= LEAST_AT_ONCE:
        return None
    return _at_most(known, max(LEAST_AT_ONCE, beside), at + _LOWERED_CONCURRENCY_SECONDS)


def lower_minute(known: Lowered | None, *, used: int, at: float) -> Lowered:
    """Return the minute limit to apply to background calls after code 44.

    `used` is the number of minute slots that the bot was using.
    """
    return _at_most(known, max(LEAST_A_MINUTE, used - MINUTE_MARGIN), at + _LOWERED_MINUTE_SECONDS)


def _at_most(known: Lowered | None, limit: int, until: float) -> Lowered:
    return Lowered(min(limit, known.limit) if known else limit, until)


DAY_SECONDS = 25 * 3600.0
REPORTED_DAY_SECONDS = 24 * 3600.0
# The service reports the time until the reset in whole seconds.
_ROUNDING_SECONDS = 1.0
# The minute limit of every plan. A daily limit is always higher.
SMALLEST_DAY = 100
_LONGEST_RESET_SECONDS = 90_000  # 25 hours, the length of the longest day.


class DaySource(StrEnum):
    """The source of the current daily limit."""

    PLAN = "plan"
    REPORTED = "reported"
    MESSAGE = "message"


@dataclass(frozen=True)
class ReportedDay:
    """The daily limit and usage that the service reported in its response to call `number`.

    `unsure` is the number of earlier calls that had no response yet when that call was reserved.
    The report may include some of these calls.
    """

    limit: int
    remaining: int
    resets_at: float
    number: int
    unsure: int

    @property
    def used(self) -> int:
        """The number of calls that the service has counted, including other clients' calls."""
        return self.limit - self.remaining


@dataclass(frozen=True)
class DayUse:
    """The number of calls in the current day and the daily limit.

    `resets_at` is None unless the service reported the reset time.
    """

    used: int
    limit: int
    source: DaySource
    resets_at: float | None = None


def reported_day(
    limits: ReportedLimits, headers_at: float, number: int, unsure: int
) -> ReportedDay | None:
    """Return the daily limit and usage from response headers, or None if they're implausible."""
    is_sane = (
        limits.limit > SMALLEST_DAY
        and 0 <= limits.remaining <= limits.limit
        and 0 < limits.reset_seconds <= _LONGEST_RESET_SECONDS
    )
    if not is_sane:
        return None
    resets_at = headers_at + limits.reset_seconds + _ROUNDING_SECONDS
    return ReportedDay(limits.limit, limits.remaining, resets_at, number, unsure)


def day_began_at(reported: ReportedDay | None, now: float) -> float:
    """Return the start of the day: the last known reset or 25 hours ago, whichever is later."""
    any_day = now - DAY_SECONDS
    if reported is None:
        return any_day
    if now < reported.resets_at:
        return max(any_day, reported.resets_at - REPORTED_DAY_SECONDS)
    return max(any_day, reported.resets_at)


def day_use(
    plan_limit: int,
    now: float,
    sent: int,
    reported: ReportedDay | None = None,
    sent_since_report: int = 0,
    lowered: int | None = None,
) -> DayUse:
    """Return the day's usage from a recent report or, if there is none, from the bot's own calls.

    `sent` is the number of calls since the day began, including calls that had no response yet at
    that time. `sent_since_report` is the number of calls after the call that returned the report.
    `lowered` is the limit stated in the message of an error with code 45.
    """
    if reported is None or now >= reported.resets_at + REPORTED_DAY_SECONDS:
        day = DayUse(sent, plan_limit, DaySource.PLAN)
    elif now >= reported.resets_at:
        # A new day has begun, and the service hasn't reported on it yet.
        day = DayUse(sent, reported.limit, DaySource.REPORTED)
    else:
        used = reported.used + reported.unsure + sent_since_report
        day = DayUse(used, reported.limit, DaySource.REPORTED, reported.resets_at)
    if lowered is None or lowered >= day.limit:
        return day
    return replace(day, limit=lowered, source=DaySource.MESSAGE)


# The number may have thousands separators.
_LIMIT = re.compile(
    r"\blimit\s*(?:of|is|was|:|=)?\s*"
    r"(\d{1,3}(?:[,.'\u2019 \u00a0\u202f]\d{3})+|\d+)(?![\d.,]*\d)",
    re.IGNORECASE,
)


def limit_in_message(message: str) -> int | None:
    """Return the daily limit stated in a code 45 error message, or None if no limit is stated.

    For example, a message may contain "exceeded the limit of 1,000". Numbers that aren't high
    enough to be a daily limit are ignored.
    """
    digits = [re.sub(r"\D", "", found) for found in _LIMIT.findall(message)]
    numbers = [int(number) for number in digits if len(number) <= MOST_DIGITS]
    return max((number for number in numbers if number > SMALLEST_DAY), default=None)
