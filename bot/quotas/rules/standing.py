"""An organization's use of its limits, summarized as a state, and the order of organizations."""

from dataclasses import dataclass
from enum import StrEnum

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import Blocks
from bot.quotas.rules.days import DaySource, DayUse
from bot.quotas.rules.plans import Limits, Plan, limits_of
from bot.quotas.rules.quota import InUse, LimitKind

_NEARLY_FULL = 0.8


class State(StrEnum):
    """The states shown to people, worst first."""

    BLOCKED = "blocked"
    DAY_FULL = "day limit reached"
    MINUTE_FULL = "minute limit reached"
    BUSY = "concurrent limit reached"
    NEARLY_FULL = "over 80 %"
    FINE = "within limits"


_STATES = tuple(State)
_SEVERITY = {state: number for number, state in enumerate(_STATES)}
_FULL = {
    LimitKind.DAY: State.DAY_FULL,
    LimitKind.MINUTE: State.MINUTE_FULL,
    LimitKind.CONCURRENT: State.BUSY,
}


@dataclass(frozen=True, slots=True)
class Meter:
    """`used` of `limit`."""

    used: int
    limit: int

    def __str__(self) -> str:
        return f"{self.used:,}/{self.limit:,}"

    @property
    def share(self) -> float:
        """The used share, from 0 to 1; more if use exceeds the limit."""
        return self.used / self.limit if self.limit else 1.0


def may_be_smaller_plan(kind: LimitKind, own: Meter) -> bool:
    """Return True if the bot exceeded a smaller plan's limit; that plan may be the actual plan."""
    smallest: int = getattr(limits_of(Plan.FREE), kind.value)
    return own.limit > own.used > smallest


@dataclass(frozen=True, slots=True)
class Standing:
    """An organization's use of each limit at one time, known without a call.

    `lowered_until` is set if `limits` allows fewer concurrent calls than the plan.
    """

    key: OrganizationKey
    plan: Plan
    limits: Limits
    in_use: InUse
    day: DayUse
    blocks: Blocks
    lowered_until: float | None = None

    @classmethod
    def idle(cls, key: OrganizationKey, plan: Plan) -> "Standing":
        """Return the standing of an organization that was never called."""
        limits = limits_of(plan)
        day = DayUse(0, limits.day, DaySource.PLAN)
        return cls(key, plan, limits, InUse(), day, Blocks())

    def meter(self, kind: LimitKind) -> Meter:
        """Return the use of one limit."""
        if kind is LimitKind.MINUTE:
            return Meter(self.in_use.minute, self.limits.minute)
        if kind is LimitKind.DAY:
            return Meter(self.day.used, self.day.limit)
        return Meter(self.in_use.concurrent, self.limits.concurrent)

    @property
    def state(self) -> State:
        """Return the worst state that applies to the organization."""
        return self._state(self._shares())

    @property
    def is_used(self) -> bool:
        """Return True if any limit is in use."""
        return max(self._shares()) > 0

    @property
    def rank(self) -> tuple[int, float, str, str]:
        """Return the sort key, worst first: state, closeness to a limit, then key."""
        shares, key = self._shares(), self.key
        return _SEVERITY[self._state(shares)], -max(shares), key.data_center, key.organization_id

    def _shares(self) -> tuple[float, ...]:
        return tuple(self.meter(kind).share for kind in _FULL)

    def _state(self, shares: tuple[float, ...]) -> State:
        if self.blocks:
            return State.BLOCKED
        highest = max(shares)
        if highest < 1:
            return State.NEARLY_FULL if highest >= _NEARLY_FULL else State.FINE
        full = (state for state, share in zip(_FULL.values(), shares, strict=True) if share >= 1)
        return next(full)
