"""The limits of each plan, usage in the current day, and limits that are lowered after a 429.

The numbers come from "Limits" in area B of the specification. Times are Unix timestamps from the
database's clock. The service doesn't say when its day begins, so a day is a sliding window of 25
hours, unless the service reports when the day's limit resets. Calls are numbered when they are
reserved, so the number of calls in a period is the difference between two call numbers.
"""

import re
from collections.abc import Iterable, Sequence
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


class Source(StrEnum):
    """What sets a limit: the service, as far as is known, or Gatehouse, which leaves calls over."""

    PLAN = "plan"
    REPORTED = "reported"
    MESSAGE = "message"
    REFUSAL = "refusal"
    RESERVE = "reserve"
    PEOPLE = "people"
    RESET = "reset"
    STALL = "stall"
    SHARE = "share"


@dataclass(frozen=True)
class Limit:
    """A limit in force: at most `most` calls of a kind. `until` is its known end, if there is one.

    A kind without a limit isn't limited. If there are several limits of a kind, the lowest counts.
    """

    kind: LimitKind
    most: int
    source: Source = Source.PLAN
    until: float | None = None

    @property
    def is_for_background(self) -> bool:
        """True for the minute's limit after a refusal, which leaves people what they had."""
        return self.source is Source.REFUSAL and self.kind is LimitKind.MINUTE


# While the service hangs, it gets one call at a time.
STALL = Limit(LimitKind.CONCURRENT, 1, Source.STALL)
# After a reported reset, one call at a time finds out how many calls the service now allows.
RESET = Limit(LimitKind.CONCURRENT, 1, Source.RESET)


def _most(limit: Limit) -> int:
    return limit.most


def applying(limits: Iterable[Limit], kind: LimitKind, call_class: CallClass) -> list[Limit]:
    """Return the limits of a kind that apply to a class of calls, loosest first.

    Background calls leave a fifth for people.
    """
    its = [limit for limit in limits if limit.kind is kind]
    for_people = [limit for limit in its if not limit.is_for_background]
    if call_class is not CallClass.BACKGROUND or not for_people:
        its = for_people
    else:
        lowest = min(for_people, key=_most)
        # Round down for people's sake, but leave the background at least one call.
        its.append(replace(lowest, most=max(1, lowest.most * 4 // 5), source=Source.PEOPLE))
    return sorted(its, key=_most, reverse=True)


def share_of(limits: Sequence[Limit], share: float) -> list[Limit]:
    """Add a client's share of the lowest limit. `share` is greater than 0 and at most 1."""
    lowest = limits[-1]
    return [*limits, replace(lowest, most=max(1, int(lowest.most * share)), source=Source.SHARE)]


def less_reserve(limits: Iterable[Limit], minute: int, day: int) -> tuple[Limit, ...]:
    """Add the limits that leave calls to programs that don't use Gatehouse, but at least one."""
    limits = tuple(limits)
    for kind, reserved in ((LimitKind.MINUTE, minute), (LimitKind.DAY, day)):
        its = applying(limits, kind, CallClass.PERSON)
        if reserved and its:
            left = max(1, its[-1].most - reserved)
            limits = (*limits, replace(its[-1], most=left, source=Source.RESERVE))
    return limits


@dataclass(frozen=True)
class Limits:
    """The calls that a plan allows per minute, per day, and at once. None means no such limit."""

    minute: int | None = None
    day: int | None = None
    concurrent: int | None = None

    def in_force(self) -> list[Limit]:
        """Return the limits as a list."""
        numbers = zip(LimitKind, (self.minute, self.day, self.concurrent), strict=True)
        return [Limit(kind, most) for kind, most in numbers if most is not None]


_MINUTE = 100
# The smallest plan's limit of calls at once. If fewer calls than this exceed the service's limit,
# other clients are making calls too.
LEAST_AT_ONCE = 5
LIMITS = {
    Plan.FREE: Limits(_MINUTE, 1_000, LEAST_AT_ONCE),
    Plan.STANDARD: Limits(_MINUTE, 2_000, 10),
    Plan.PROFESSIONAL: Limits(_MINUTE, 5_000, 10),
    Plan.PREMIUM: Limits(_MINUTE, 10_000, 10),
    Plan.ENTERPRISE: Limits(_MINUTE, 10_000, 10),
}


_LOWERED_CONCURRENCY_SECONDS = 24 * 3600.0
_LOWERED_MINUTE_SECONDS = 3600.0
# Allows for variation in the usage by other clients.
MINUTE_MARGIN = 8
# Allow at least this many background calls, because other clients may stop at any time.
LEAST_A_MINUTE = 4


def lowered(
    earlier: Limit | None, code_kind: LimitKind, *, beside: int, used: int, at: float
) -> Limit | None:
    """Return the temporary limit to apply after code 44 or 1070, or None to keep what applies.

    `used` is the number of the bot's calls that counted, including the refused call, and `beside`
    is how many were running when it was granted. Other clients' calls may have contributed, so the
    limit of calls at once is never below the smallest plan's.
    """
    if code_kind is LimitKind.MINUTE:
        limit = max(LEAST_A_MINUTE, used - MINUTE_MARGIN)
        seconds = _LOWERED_MINUTE_SECONDS
    elif used > LEAST_AT_ONCE:
        limit = max(LEAST_AT_ONCE, beside)
        seconds = _LOWERED_CONCURRENCY_SECONDS
    else:
        return None
    most = min(limit, earlier.most) if earlier else limit
    return Limit(code_kind, most, Source.REFUSAL, at + seconds)


DAY_SECONDS = 25 * 3600.0
REPORTED_DAY_SECONDS = 24 * 3600.0
# The service reports the time until the reset in whole seconds.
_ROUNDING_SECONDS = 1.0
# The minute limit of every plan. A daily limit is always higher.
SMALLEST_DAY = 100
_LONGEST_RESET_SECONDS = 90_000  # 25 hours, the length of the longest day.


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
    plan: Limit,
    now: float,
    sent: int,
    reported: ReportedDay | None = None,
    sent_since_report: int = 0,
    lowered: int | None = None,
) -> tuple[int, list[Limit]]:
    """Return the day's calls and limits, from a recent report or else the bot's own calls.

    `sent` is the number of calls since the day began, including calls that had no response yet at
    that time. `sent_since_report` is the number of calls after the call that returned the report.
    `lowered` is the limit stated in the message of an error with code 45. The limit's `until` is
    the reported reset.
    """
    used = sent
    limit = plan
    others = []
    if reported is not None and now < reported.resets_at + REPORTED_DAY_SECONDS:
        limit = replace(plan, most=reported.limit, source=Source.REPORTED)
        if now < reported.resets_at:
            used = reported.used + reported.unsure + sent_since_report
            limit = replace(limit, until=reported.resets_at)
        else:
            # The service hasn't reported on the new day yet. Its day may also be a sliding window.
            others.append(RESET)
    if lowered is not None and lowered < limit.most:
        limit = replace(limit, most=lowered, source=Source.MESSAGE)
    return used, [limit, *others]


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
    digits = [re.sub(r"\D", "", match) for match in _LIMIT.findall(message)]
    numbers = [int(number) for number in digits if len(number) <= MOST_DIGITS]
    return max((number for number in numbers if number > SMALLEST_DAY), default=None)
