"""How an organization stands with its limits: one word, and which organization is worst off."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bot.model.blocks import Blocks
from bot.model.days import DaySource, DayUse
from bot.model.organization import OrganizationKey
from bot.model.plans import Limits, Plan, limits_of
from bot.model.quota import InUse, LimitKind

_NEARLY_FULL = 0.8


class State(StrEnum):
    """One word for people, worst first."""

    BLOCKED = "blocked"
    DAY_FULL = "day used up"
    MINUTE_FULL = "minute used up"
    BUSY = "busy"
    NEARLY_FULL = "nearly full"
    FINE = "fine"


_SEVERITY = {state: number for number, state in enumerate(State)}
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
        return f"{self.used}/{self.limit}"

    @property
    def share(self) -> float:
        """0 to 1, or more where more is used than is allowed."""
        return self.used / self.limit if self.limit else 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """An organization's use of each limit at one moment, known without a call."""

    key: OrganizationKey
    plan: Plan
    limits: Limits
    in_use: InUse
    day: DayUse
    blocks: Blocks

    @classmethod
    def idle(cls, key: OrganizationKey, plan: Plan) -> "Standing":
        """An organization that was never called."""
        limits = limits_of(plan)
        day = DayUse(0, limits.day, DaySource.PLAN)
        return cls(key, plan, limits, InUse(), day, Blocks())

    def meter(self, kind: LimitKind) -> Meter:
        """The use of one limit."""
        return {
            LimitKind.MINUTE: Meter(self.in_use.minute, self.limits.minute),
            LimitKind.DAY: Meter(self.day.used, self.day.limit),
            LimitKind.CONCURRENT: Meter(self.in_use.concurrent, self.limits.concurrent),
        }[kind]

    @property
    def state(self) -> State:
        """The worst thing that can be said."""
        if self.blocks:
            return State.BLOCKED
        for kind, state in _FULL.items():
            if self.meter(kind).share >= 1:
                return state
        return State.NEARLY_FULL if self.highest_share >= _NEARLY_FULL else State.FINE

    @property
    def highest_share(self) -> float:
        """The share of the limit that is nearest to its end."""
        return max(self.meter(kind).share for kind in LimitKind)


def worst_first(standings: Iterable[Standing]) -> list[Standing]:
    """Blocked ones first, then by state, then by how near to a limit; equal ones by key."""
    return sorted(standings, key=lambda s: (_SEVERITY[s.state], -s.highest_share, s.key))
