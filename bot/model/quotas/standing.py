"""How an organization stands with its limits: one word, and which organization is worst off."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import Blocks
from bot.model.quotas.days import DaySource, DayUse
from bot.model.quotas.plans import Limits, Plan, limits_of
from bot.model.quotas.quota import InUse, LimitKind

_NEARLY_FULL = 0.8


class State(StrEnum):
    """One word for people, worst first."""

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
        """0 to 1, or more where more is used than is allowed."""
        return self.used / self.limit if self.limit else 1.0


def may_be_smaller_plan(kind: LimitKind, own: Meter) -> bool:
    """Whether the bot was above the limit of a smaller plan, which may be the organization's."""
    smallest: int = getattr(limits_of(Plan.FREE), kind.value)
    return own.limit > own.used > smallest


@dataclass(frozen=True, slots=True)
class Standing:
    """An organization's use of each limit at one moment, known without a call.

    `lowered_until` is there where `limits` has fewer calls at once than the plan.
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
        """An organization that was never called."""
        limits = limits_of(plan)
        day = DayUse(0, limits.day, DaySource.PLAN)
        return cls(key, plan, limits, InUse(), day, Blocks())

    def meter(self, kind: LimitKind) -> Meter:
        """The use of one limit."""
        if kind is LimitKind.MINUTE:
            return Meter(self.in_use.minute, self.limits.minute)
        if kind is LimitKind.DAY:
            return Meter(self.day.used, self.day.limit)
        return Meter(self.in_use.concurrent, self.limits.concurrent)

    @property
    def state(self) -> State:
        """The worst thing that can be said."""
        return self._state(self._shares())

    @property
    def is_used(self) -> bool:
        """Whether anything of any limit is used."""
        return max(self._shares()) > 0

    @property
    def rank(self) -> tuple[int, float, str, str]:
        """What orders organizations, worst first: state, nearness to a limit, and then the key."""
        shares, key = self._shares(), self.key
        return _SEVERITY[self._state(shares)], -max(shares), key.data_center, key.organization_id

    def _shares(self) -> tuple[float, ...]:
        """The share of each limit that is used, in the order of `_FULL`."""
        return tuple(self.meter(kind).share for kind in _FULL)

    def _state(self, shares: tuple[float, ...]) -> State:
        if self.blocks:
            return State.BLOCKED
        highest = max(shares)
        if highest < 1:
            return State.NEARLY_FULL if highest >= _NEARLY_FULL else State.FINE
        full = (state for state, share in zip(_FULL.values(), shares, strict=True) if share >= 1)
        return next(full)


Ranked = tuple[tuple[int, float, str, str], Standing]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How every organization stands at one moment, worst first.

    `called` are those there is something to tell of, and `idle` the keys of the others that are
    listed, in order; `idle_standing` is how one of these stands. `shown` are those of `called` that
    are of interest to people, `states` how many of both are in which state, and `organizations` how
    many both are: what counts against a data center itself is no organization.
    """

    called: Sequence[Standing]
    shown: Sequence[Standing]
    idle: Sequence[OrganizationKey]
    idle_standing: Callable[[OrganizationKey], Standing]
    states: Mapping[State, int]
    organizations: int
    at: float

    def __len__(self) -> int:
        return len(self.shown) + len(self.idle)

    def slice(self, start: int, count: int) -> list[Standing]:
        """So many of those that are shown, from one on."""
        called = self.shown[start : start + count]
        first = max(0, start - len(self.shown))
        idle = self.idle[first : first + count - len(called)]
        return [*called, *map(self.idle_standing, idle)]

    def with_idle(self, most_idle: int) -> list[Standing]:
        """All that were called, and some that were not: of those there is only a limit to tell."""
        return [*self.called, *map(self.idle_standing, self.idle[:most_idle])]


class RankingBuilder:
    """Makes a ranking a portion at a time: ten thousand at once would keep others waiting.

    Args:
        listed: The keys that are listed, in order.
    """

    def __init__(self, listed: Collection[OrganizationKey]) -> None:
        self._listed = listed
        self._called: list[Standing] = []
        self._shown: list[Standing] = []
        self._seen: set[OrganizationKey] = set()
        self._idle: list[OrganizationKey] = []
        self._states = dict.fromkeys(State, 0)
        self._organizations = 0

    def add_called(self, portion: Iterable[Ranked]) -> None:
        """The next ones, worst first.

        What is not listed, such as a data center's own account, is of interest to people only when
        something is wrong with it.
        """
        for (severity, *_), standing in portion:
            self._called.append(standing)
            self._seen.add(standing.key)
            if severity < _SEVERITY[State.FINE] or standing.key in self._listed:
                self._shown.append(standing)
                self._states[_STATES[severity]] += 1
                self._organizations += bool(standing.key.organization_id)

    def add_listed(self, portion: Iterable[OrganizationKey]) -> None:
        """The next keys that are listed, when all that were called are there."""
        self._idle += (key for key in portion if key not in self._seen)

    def ranking(self, idle_standing: Callable[[OrganizationKey], Standing], at: float) -> Ranking:
        """All of them, as they stood then."""
        count = len(self._idle)
        states = {**self._states, State.FINE: self._states[State.FINE] + count}
        many = self._organizations + count
        return Ranking(self._called, self._shown, self._idle, idle_standing, states, many, at)
