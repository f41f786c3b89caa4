"""What `/ratelimits` tells: every organization's use, and the last 24 hours of one."""

from collections import Counter
from collections.abc import Mapping, Sequence

from bot.dataclass import dataclass
from bot.model.organizations.directory import DataCenterReport
from bot.model.quotas.forecast import Forecast, forecast
from bot.model.quotas.plans import Limits, Plan, limits_of
from bot.model.quotas.quota import LimitKind
from bot.model.quotas.standing import Standing, State

HOUR_SECONDS = 3600
HOURS_SHOWN = 24
# Of those who called, most calls first; the rest are counted together.
PEOPLE_SHOWN = 10
ORGANIZATIONS_SHOWN = 15


@dataclass(frozen=True, slots=True)
class OrganizationUse:
    """An organization by name, and how it stands."""

    name: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of all organizations, worst first, and the data centers that could not be listed.

    `states` counts all organizations, and what counts against a data center itself; the pages are
    numbered from 0.
    """

    uses: Sequence[OrganizationUse]
    failures: Sequence[DataCenterReport]
    at: float
    organizations: int
    states: Mapping[State, int]
    page: int = 0
    pages: int = 1


@dataclass(frozen=True, slots=True)
class HourOfCalls:
    """Calls of one kind by one person (None: the bot) in the hour that begins at `hour_at`."""

    hour_at: float
    kind: str
    slack_user_id: str | None
    calls: int


@dataclass(frozen=True, slots=True)
class Detail:
    """One organization: now, over the last 24 hours, and from here on.

    `free_at` is when a limit that is used up has room again; `people` has the names of who called;
    `others_used` are calls of the day by other clients, None where the service does not tell.
    """

    name: str
    standing: Standing
    free_at: Mapping[LimitKind, float]
    hours: Sequence[HourOfCalls]
    people: dict[str, str]
    forecast: Forecast
    others_used: int | None
    at: float

    @classmethod
    def idle(cls, name: str, standing: Standing, at: float) -> "Detail":
        """An organization that was never called."""
        pace = forecast(standing.day, 0, at)
        return cls(name, standing, {}, (), {}, pace, None, at)

    def by_hour(self) -> list[tuple[float, int]]:
        """Each of the last 24 hours of the clock with its calls, oldest first."""
        made: Counter[float] = Counter()
        for hour in self.hours:
            made[hour.hour_at] += hour.calls
        first = first_hour(self.at)
        return [(at, made[at]) for at in (first + n * HOUR_SECONDS for n in range(HOURS_SHOWN))]

    def by_person(self) -> list[tuple[str | None, int]]:
        """Calls by who made them (None: the bot itself), most first."""
        return by_person(self.hours)

    def by_kind(self) -> list[tuple[str, int]]:
        """Calls by what they were for, most first."""
        made: Counter[str] = Counter()
        for hour in self.hours:
            made[hour.kind] += hour.calls
        return sorted(made.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check showed.

    `seconds` of a call that passed; `refusal` are the service's words for one that it refused;
    with neither no call was made, because the organization is blocked. `until` is when the bot
    itself tries again.
    """

    name: str
    standing: Standing
    seconds: float | None = None
    refusal: str | None = None

    @property
    def until(self) -> float | None:
        """When the bot itself tries again."""
        block = self.standing.blocks.longest
        return block.until if block else None


@dataclass(frozen=True, slots=True)
class PlanSet:
    """A plan that was set, and the one in force before.

    `is_lifted` where a 429 had lowered a limit below the plan's, which is in force again.
    """

    name: str
    before: Plan
    now: Plan
    is_lifted: bool = False

    @property
    def limits(self) -> Limits:
        """What the plan allows."""
        return limits_of(self.now)


def by_person(hours: Sequence[HourOfCalls]) -> list[tuple[str | None, int]]:
    """Calls by who made them (None: the bot itself), most first."""
    made: Counter[str | None] = Counter()
    for hour in hours:
        made[hour.slack_user_id] += hour.calls
    return sorted(made.items(), key=lambda item: (-item[1], item[0] or ""))


def first_hour(now: float) -> float:
    """The first of the 24 hours of the clock that end with the current one."""
    this_hour = now // HOUR_SECONDS * HOUR_SECONDS
    return this_hour - (HOURS_SHOWN - 1) * HOUR_SECONDS
