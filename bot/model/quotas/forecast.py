"""When the day's allowance ends, if calls go on as in the last hour."""

from collections.abc import Sequence
from itertools import pairwise

from bot.dataclass import dataclass
from bot.model.quotas.days import DAY_SECONDS, REPORTED_DAY_SECONDS, DayUse

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """`ends_at` is None when the allowance lasts at this pace."""

    calls_an_hour: int
    ends_at: float | None


@dataclass(frozen=True, slots=True)
class OldCalls:
    """Calls of the hour that began at `hour_at`: a day of any 25 hours gets them back."""

    hour_at: float
    calls: int


def forecast(
    day: DayUse,
    calls_last_hour: int,
    now: float,
    old: Sequence[OldCalls] = (),
    others_used: int | None = None,
) -> Forecast:
    """The end of the day's allowance at the pace of the last hour.

    The allowance lasts when that end is later than the day's own: the reset that was reported,
    or 25 hours from now. `old` are the calls of a day of any 25 hours, by hour; other clients go on
    at the pace that made `others_used` of a reported day.
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
    """The first moment at which all is used, while old calls leave: a line with a few corners."""

    def used(at: float) -> float:
        left = sum(_left(one, at) - _left(one, now) for one in old)
        return day.used + calls_an_hour * (at - now) / _HOUR_SECONDS - left

    leaving = (one.hour_at + DAY_SECONDS for one in old)
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


def _left(one: OldCalls, at: float) -> float:
    """How many of them have left the day by then: evenly over an hour."""
    share = (at - one.hour_at - DAY_SECONDS) / _HOUR_SECONDS
    return one.calls * min(1.0, max(0.0, share))
