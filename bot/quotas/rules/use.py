"""The data for `/ratelimits`: each organization's usage, state, and calls in the last 24 hours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    DaySource,
    DayUse,
    LimitKind,
    Limits,
    Lowered,
    Plan,
    ReportedDay,
    day_began_at,
    limits_of,
)
from bot.quotas.rules.quota import Blocks, InUse

_NEARLY_FULL = 0.8


class QuotaState(StrEnum):
    """The states of an organization, as shown to people, worst first."""

    BLOCKED = "blocked"
    DAY_FULL = "day limit reached"
    MINUTE_FULL = "minute limit reached"
    BUSY = "concurrent limit reached"
    NEARLY_FULL = "80% or more"
    FINE = "within limits"


_FULL = {
    LimitKind.DAY: QuotaState.DAY_FULL,
    LimitKind.MINUTE: QuotaState.MINUTE_FULL,
    LimitKind.CONCURRENT: QuotaState.BUSY,
}


@dataclass(frozen=True)
class Meter:
    """Usage against a limit: `used` of `limit` calls. Other programs get `reserved` calls."""

    used: int
    limit: int
    reserved: int = 0

    def __str__(self) -> str:
        return f"{self.used:,}/{self.limit:,}"

    @property
    def allowed(self) -> int:
        """The number of calls that Gatehouse can use, which is at least 1."""
        return max(1, self.limit - self.reserved)

    @property
    def share(self) -> float:
        """The used fraction of the allowed calls. Can be greater than 1."""
        return self.used / self.allowed


@dataclass(frozen=True)
class Standing:
    """An organization's limits, usage, and blocks at one point in time, from the database.

    `id` is the organization's ID in the database, or 0 if the organization isn't stored yet.
    `made` is the number of the newest call. `lowered` has the temporary limits for concurrent calls
    and for background calls per minute.
    """

    key: OrganizationKey
    plan: Plan
    in_use: InUse
    day: DayUse
    blocks: Blocks
    lowered: Mapping[LimitKind, Lowered] = field(default_factory=dict)
    reported: ReportedDay | None = None
    reserve: tuple[int, int] = (0, 0)
    watched_at: float = 0.0
    id: int = 0
    now: float = 0.0
    made: int = 0

    @classmethod
    @lru_cache(maxsize=10_000)
    def idle(cls, key: OrganizationKey, plan: Plan) -> "Standing":
        """Return the standing of an organization without any calls.

        It is cached, because an overview of thousands of organizations needs one for each.
        """
        day = DayUse(0, limits_of(plan).day, DaySource.PLAN)
        return cls(key, plan, InUse(), day, Blocks())

    @property
    def limits(self) -> Limits:
        """The plan's limits, including any temporarily lowered concurrency limit."""
        limits = limits_of(self.plan)
        lowered = self.lowered.get(LimitKind.CONCURRENT)
        if lowered is None:
            return limits
        return replace(limits, concurrent=min(limits.concurrent, lowered.limit))

    @property
    def allowed(self) -> Limits:
        """The limits that Gatehouse applies, minus the calls reserved for other programs."""
        background = self.lowered.get(LimitKind.MINUTE)
        minute, day, concurrent = (self.meter(kind).allowed for kind in LimitKind)
        return Limits(minute, day, concurrent, background.limit if background else None)

    @property
    def day_began_at(self) -> float:
        """The start of the current day."""
        return day_began_at(self.reported, self.now)

    def meter(self, kind: LimitKind) -> Meter:
        """Return the usage and the limit of the given kind."""
        if kind is LimitKind.MINUTE:
            return Meter(self.in_use.minute, self.limits.minute, self.reserve[0])
        if kind is LimitKind.DAY:
            return Meter(self.day.used, self.day.limit, self.reserve[1])
        return Meter(self.in_use.concurrent, self.limits.concurrent)

    @property
    def state(self) -> QuotaState:
        """The worst state that applies to the organization."""
        if self.blocks:
            return QuotaState.BLOCKED
        full = (state for kind, state in _FULL.items() if self.meter(kind).share >= 1)
        otherwise = QuotaState.NEARLY_FULL if self.closeness >= _NEARLY_FULL else QuotaState.FINE
        return next(full, otherwise)

    @property
    def closeness(self) -> float:
        """The highest usage of any limit, as a fraction of the allowed calls."""
        return max(self.meter(kind).share for kind in LimitKind)

    @property
    def rank(self) -> tuple[int, float, OrganizationKey]:
        """The key for sorting by state, closeness to a limit, and organization, worst first."""
        return tuple(QuotaState).index(self.state), -self.closeness, self.key


HOUR_SECONDS = 3600
HOURS_SHOWN = 24
# The number of callers to show by name. All others are counted together.
PEOPLE_SHOWN = 10


@dataclass(frozen=True)
class HourOfCalls:
    """The number of calls of one kind by one caller, in the hour that begins at `hour_at`.

    `slack_user_id` is the caller's name in the ledger, which is empty for the bot itself.
    """

    hour_at: float
    kind: str
    slack_user_id: str
    calls: int


def forecast(
    day: DayUse,
    calls_last_hour: int,
    now: float,
    hours: Sequence[HourOfCalls] = (),
) -> float | None:
    """Return the time when the daily limit will be reached at the pace of the last hour.

    Return None if the limit won't be reached before the reported reset or, if no reset was
    reported, within 25 hours. In a sliding day, calls stop counting after 25 hours, and the calls
    in `hours` are assumed to be evenly spaced.
    """
    left = float(day.limit - day.used)
    if left <= 0:
        return now
    leaving = hours if day.resets_at is None else ()
    until = day.resets_at or now + DAY_SECONDS
    at = now
    while at < until:
        since = at - DAY_SECONDS
        freed = sum(
            hour.calls for hour in leaving if hour.hour_at <= since < hour.hour_at + HOUR_SECONDS
        )
        # Part of the hour in which the day begins has already stopped counting.
        seconds = HOUR_SECONDS - at % HOUR_SECONDS
        lost = (calls_last_hour - freed) * seconds / HOUR_SECONDS
        if left < lost:
            ends_at = at + left / lost * seconds
            return ends_at if ends_at < until else None
        left -= lost
        at += seconds
    return None


def calls_by(field_name: str, hours: Sequence[HourOfCalls]) -> Counter[Any]:
    """Count the calls for each value of a field of `HourOfCalls`."""
    made: Counter[Any] = Counter()
    for hour in hours:
        made[getattr(hour, field_name)] += hour.calls
    return made


def first_hour(now: float) -> float:
    """Return the start of the earliest of the last 24 clock hours, including the current hour."""
    this_hour = now // HOUR_SECONDS * HOUR_SECONDS
    return this_hour - (HOURS_SHOWN - 1) * HOUR_SECONDS


def by_hour(hours: Sequence[HourOfCalls], now: float) -> list[tuple[float, int]]:
    """Return the number of calls in each of the last 24 clock hours, oldest first."""
    made = calls_by("hour_at", hours)
    first = first_hour(now)
    return [(at, made[at]) for at in (first + n * HOUR_SECONDS for n in range(HOURS_SHOWN))]
