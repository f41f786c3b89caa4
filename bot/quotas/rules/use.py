"""The data for `/ratelimits`: each organization's usage, state, and calls in the last 24 hours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    Limit,
    LimitKind,
    Plan,
    ReportedDay,
    Source,
    applying,
    day_began_at,
    less_reserve,
)
from bot.quotas.rules.quota import Blocks, InUse, Terms
from bot.services.calls import CallClass

_NEARLY_FULL = 0.8
HOUR_SECONDS = 3600


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
    """Usage against the service's limit. Gatehouse makes at most `allowed` of the calls."""

    used: int
    limit: int
    allowed: int

    def __str__(self) -> str:
        return f"{self.used:,}/{self.limit:,}"

    @property
    def share(self) -> float:
        """The used fraction of the allowed calls. Can be greater than 1."""
        return self.used / self.allowed


# The limits that Gatehouse sets itself.
_OWN = {Source.RESERVE, Source.STALL, Source.RESET}


@dataclass(frozen=True)
class Standing:
    """An organization's limits, usage, and blocks at one point in time, from the database.

    `id` is the organization's ID in the database, or 0 if the organization isn't stored yet.
    `made` is the number of the newest call.
    """

    key: OrganizationKey
    plan: Plan
    in_use: InUse
    limits: Sequence[Limit]
    blocks: Blocks
    reported: ReportedDay | None = None
    watched_at: float = 0.0
    id: int = 0
    now: float = 0.0
    made: int = 0

    @classmethod
    @lru_cache(maxsize=10_000)
    def idle(cls, key: OrganizationKey, terms: Terms) -> "Standing":
        """Return the standing of an organization without any calls.

        It is cached, because an overview of thousands of organizations needs one for each.
        """
        plan = terms.plan_of(key)
        limits = less_reserve(terms.limits_of(key, plan).in_force(), *terms.reserve_of(key))
        return cls(key, plan, InUse(), limits, Blocks())

    def with_one_more(self) -> "Standing":
        """Return the standing after another call."""
        used = self.in_use
        in_use = InUse(used.minute + 1, used.concurrent + 1, used.day + 1)
        return replace(self, in_use=in_use, made=self.made + 1)

    @property
    def day_began_at(self) -> float:
        """The start of the current day."""
        return day_began_at(self.reported, self.now)

    @cached_property
    def meters(self) -> Mapping[LimitKind, Meter]:
        """The usage against each kind of limit that the service has."""
        meters = {}
        for kind in LimitKind:
            its = applying(self.limits, kind, CallClass.PERSON)
            theirs = [limit.most for limit in its if limit.source not in _OWN]
            if theirs:
                meters[kind] = Meter(self.in_use.of(kind), theirs[-1], its[-1].most)
        return meters

    def day_ends_at(self, calls_last_hour: int) -> float | None:
        """Return when the day's calls will be used up at the pace of the last hour.

        Return None if they will last until the reported reset or, without one, for 25 hours.
        """
        day = self.meters[LimitKind.DAY]
        left = day.allowed - day.used
        if left <= 0:
            return self.now
        if calls_last_hour == 0:
            return None
        lowest = applying(self.limits, LimitKind.DAY, CallClass.PERSON)[-1]
        ends_at = self.now + left / calls_last_hour * HOUR_SECONDS
        return ends_at if ends_at < (lowest.until or self.now + DAY_SECONDS) else None

    def lowered(self, kind: LimitKind) -> Limit | None:
        """Return the limit of this kind that a 429 has lowered, if there is one."""
        its = (limit for limit in self.limits if limit.kind is kind)
        return next((limit for limit in its if limit.source is Source.REFUSAL), None)

    @property
    def state(self) -> QuotaState:
        """The worst state that applies to the organization."""
        if self.blocks:
            return QuotaState.BLOCKED
        for kind, state in _FULL.items():
            if kind in self.meters and self.meters[kind].share >= 1:
                return state
        return QuotaState.NEARLY_FULL if self.closeness >= _NEARLY_FULL else QuotaState.FINE

    @property
    def closeness(self) -> float:
        """The highest usage of any limit, as a fraction of the allowed calls."""
        return max((meter.share for meter in self.meters.values()), default=0.0)

    @property
    def rank(self) -> tuple[int, float, OrganizationKey]:
        """The key for sorting by state, closeness to a limit, and organization, worst first."""
        return tuple(QuotaState).index(self.state), -self.closeness, self.key


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
