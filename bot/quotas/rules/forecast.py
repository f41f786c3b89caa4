"""Forecasts the end of the day's calls at the pace of the last hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.quotas.rules.days import DAY_SECONDS, REPORTED_DAY_SECONDS, DayUse

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """The pace, and the time at which calls run out; `ends_at` is None if they last."""

    calls_an_hour: int
    ends_at: float | None


@dataclass(frozen=True, slots=True)
class OldCalls:
    """Calls of the hour from `hour_at`, which leave a day of any 25 hours again."""

    hour_at: float
    calls: int


def forecast(
    day: DayUse,
    calls_last_hour: int,
    now: float,
    old: Sequence[OldCalls] = (),
    others_used: int | None = None,
) -> Forecast:
    """Return when the day's calls run out at the pace of the last hour.

    They last if that is later than the end of the day: the reported reset, or 25 hours from now.
    `old` are the calls of a day of any 25 hours, by hour. Other clients are assumed to continue at
    the pace that made `others_used` of a reported day.
    """
    if day.used >= day.limit:
        return Forecast(calls_last_hour, now)
    if day.resets_at is None:
        return Forecast(calls_last_hour, _end_of_any_day(day, calls_last_hour, now, old))
    elapsed = max(_HOUR_SECONDS, now - (day.resets_at - REPORTED_DAY_SECONDS))
    pace = calls_last_hour + (others_used or 0) * _HOUR_SECONDS / elapsed
    ends_at = now + (day.limit - day.used) * _HOUR_SECONDS / pace if pace > 0 else float("inf")
    return Forecast(calls_last_hour, ends_at if ends_at < day.resets_at else None)


def _end_of_any_day(
    day: DayUse, calls_an_hour: int, now: float, old: Sequence[OldCalls]
) -> float | None:
    """Return the first time at which all calls are used, while old ones leave hour by hour."""

    def used(at: float) -> float:
        left = sum(_left(hour, at) - _left(hour, now) for hour in old)
        return day.used + calls_an_hour * (at - now) / _HOUR_SECONDS - left

    leaving = (hour.hour_at + DAY_SECONDS for hour in old)
    corners = {at for begins in leaving for at in (begins, begins + _HOUR_SECONDS)}
    end = now + DAY_SECONDS
    moments = [now, *sorted(at for at in corners if now < at < end), end]
    for sooner, later in pairwise(moments):
        before, after = used(sooner), used(later)
        if after >= day.limit:
            share = (day.limit - before) / (after - before)
            ends_at = sooner + share * (later - sooner)
            return ends_at if ends_at < end else None
    return None


def _left(hour: OldCalls, at: float) -> float:
    """Return how many of the hour's calls have left by then, evenly spread over an hour."""
    share = (at - hour.hour_at - DAY_SECONDS) / _HOUR_SECONDS
    return hour.calls * min(1.0, max(0.0, share))
