"""When the day's allowance ends, if calls go on as in the last hour."""

from dataclasses import dataclass

from bot.model.days import DAY_SECONDS, DayUse

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """`ends_at` is None when the allowance lasts at this pace."""

    calls_an_hour: int
    ends_at: float | None


def forecast(day: DayUse, calls_last_hour: int, now: float) -> Forecast:
    """The end of the day's allowance at the pace of the last hour.

    The allowance lasts when that end is later than the day's own: the reset that the service told,
    or 25 hours from now, when what was used is free again.
    """
    left = day.limit - day.used
    if left <= 0:
        return Forecast(calls_last_hour, now)
    if calls_last_hour <= 0:
        return Forecast(calls_last_hour, None)
    ends_at = now + left * _HOUR_SECONDS / calls_last_hour
    day_ends_at = day.resets_at if day.resets_at is not None else now + DAY_SECONDS
    return Forecast(calls_last_hour, ends_at if ends_at < day_ends_at else None)
