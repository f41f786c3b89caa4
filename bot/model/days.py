"""The day's allowance: any 25 hours, unless the service tells its own day.

When the service's day begins is not documented, and a local day is 25 hours long once a year.
Calls are numbered as they are reserved, so that "how many since" is a difference of two numbers.
Times are seconds since the epoch by the database's clock.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.model.blocks import BlockCode
from bot.model.told import ToldLimits

DAY_SECONDS = 25 * 3600.0
_TOLD_DAY_SECONDS = 24 * 3600.0
# The reset is told in whole seconds.
_TOLD_ROUNDING_SECONDS = 1.0
_LONGEST_RESET_SECONDS = 90_000  # the 25 hours of the longest day


class DaySource(StrEnum):
    """Where the day's limit in force comes from."""

    PLAN = "plan"
    TOLD = "told"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class ToldDay:
    """What the service told with the answer of call `number`.

    `unsure` calls were in flight when that call was reserved: it may or may not have counted them.
    """

    limit: int
    remaining: int
    resets_at: float
    number: int
    unsure: int = 0

    @property
    def used(self) -> int:
        """Calls of anybody that the service had counted."""
        return self.limit - self.remaining


@dataclass(frozen=True, slots=True)
class DayUse:
    """Calls of the day in force; `resets_at` only where the service told it."""

    used: int
    limit: int
    source: DaySource
    resets_at: float | None = None


@dataclass(frozen=True, slots=True)
class DayLedger:
    """What is remembered of an organization's calls, as far as its day needs it.

    `made` is the number of the newest call, `made_before` that of the newest one before the day.
    The day begins 25 hours ago, or with a told reset since then; and as long before as a call can
    go on without an answer, because the service may have counted it that much later. `lowered` is
    the limit that the message of a 45 named.
    """

    made: int
    made_before: int
    told: ToldDay | None = None
    lowered: int | None = None


def sane(limits: ToldLimits) -> bool:
    """If told numbers mean something: deployments were seen to send zeros on other answers."""
    return (
        limits.limit > 0
        and 0 <= limits.remaining <= limits.limit
        and 0 < limits.reset_seconds <= _LONGEST_RESET_SECONDS
    )


def told_day(limits: ToldLimits, headers_at: float, number: int, unsure: int) -> ToldDay | None:
    """The day that the headers of call `number` tell, or None when they tell nonsense."""
    if not sane(limits):
        return None
    resets_at = headers_at + limits.reset_seconds + _TOLD_ROUNDING_SECONDS
    return ToldDay(limits.limit, limits.remaining, resets_at, number, unsure)


def leaves_day_at(reserved_at: float, hold_seconds: float) -> float:
    """When a call is of no day any more, where nothing was told."""
    return reserved_at + hold_seconds + DAY_SECONDS


def day_use(ledger: DayLedger, plan_limit: int, now: float) -> DayUse:
    """The day in force: told by the service while that is fresh, any 25 hours otherwise."""
    told = ledger.told
    since = ledger.made - ledger.made_before
    if told is None or now >= told.resets_at + _TOLD_DAY_SECONDS:
        return _lowered(DayUse(since, plan_limit, DaySource.PLAN), ledger.lowered)
    if now >= told.resets_at:
        # A new day has begun and nothing was told of it yet.
        return _lowered(DayUse(since, told.limit, DaySource.TOLD), ledger.lowered)
    used = told.used + told.unsure + ledger.made - told.number
    return _lowered(DayUse(used, told.limit, DaySource.TOLD, told.resets_at), ledger.lowered)


def _lowered(day: DayUse, lowered: int | None) -> DayUse:
    if lowered is None or lowered >= day.limit:
        return day
    return DayUse(day.used, lowered, DaySource.MESSAGE, day.resets_at)


# Nobody has a day of so many calls: it is an address, or another number of somebody's.
_NO_LIMIT = 1_000_000_000
# Thousands may be separated; a number with a unit of time is a duration.
_NUMBER = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:[,.'\u2019 \u00a0\u202f]\d{3})+|\d{1,9})(?![\d.,]*\d)"
    r"(?!\s*(?:s|sec|second|m|min|minute|h|hour|hr)s?\b)",
    re.IGNORECASE,
)


def limit_in_message(message: str) -> int | None:
    """The limit that the message of a 45 names, as in "exceeded ... of 1,000"; None without one.

    Thousands separators are read. Of several numbers the largest is taken, and neither the code
    itself nor a duration: a lower number read by mistake would cost people their calls.
    """
    numbers = (int(re.sub(r"\D", "", found)) for found in _NUMBER.findall(message))
    limits = (one for one in numbers if one < _NO_LIMIT and one not in {0, BlockCode.DAY})
    return max(limits, default=None)
