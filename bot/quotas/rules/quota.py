"""Decides whether a call fits within the limits, and says where each organization stands.

The service counts a call at an unknown moment between request and response. A minute slot therefore
becomes free 60 s after the *response headers* arrive, and a call without a response counts as ended
after its timeout and a grace period. Proof: suppose that 101 calls reach the service within 60 s.
When the last call was sent, another of these calls had ended more than 60 s earlier. That call had
therefore reached the service more than 60 s earlier, which is a contradiction. The proof doesn't
depend on when the service's windows begin, nor on the network, unless a request without a response
is delayed for longer than its hold and its slot last, which is 75 s.

The service blocks an organization with code 44 for the minute limit, 45 for the daily limit, and
1070 for too many concurrent calls (specification, area B, "Errors"). The length of a block is not
documented, so the pause doubles with each failed attempt. During a block, no calls are made. When
the pause ends, the bot makes a single call as a probe. Times are Unix timestamps from the
database's clock.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cached_property, lru_cache
from typing import Any

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    LIMITS,
    Limit,
    LimitKind,
    Limits,
    Plan,
    ReportedDay,
    Source,
    applying,
    less_reserve,
)
from bot.services.calls import TOTAL_SECONDS, CallClass

MINUTE_SECONDS = 60.0
# Allows for windows that include both ends, and for clocks that run at different rates.
SLOT_GUARD_SECONDS = 0.05
SLOT_SECONDS = MINUTE_SECONDS + SLOT_GUARD_SECONDS
# After its timeout, a call may still be in transit, or the service may still be processing it.
GRACE_SECONDS = 5.0
# A call without a response counts as ended after this time.
HOLD_SECONDS = TOTAL_SECONDS + GRACE_SECONDS


class BlockCode(IntEnum):
    """The documented codes in the body of a 429."""

    MINUTE = 44
    DAY = 45
    CONCURRENT = 1070
    # Any 429 of another API, which doesn't say which limit was exceeded.
    API = 0

    @classmethod
    def known(cls, code: int | None) -> "BlockCode":
        """Return the code as a BlockCode, or code 44 if the code is undocumented or missing."""
        return cls(code) if code in DOCUMENTED else cls.MINUTE

    @property
    def kind(self) -> LimitKind:
        """The kind of limit that was exceeded. Not every code says it."""
        return LimitKind.MINUTE if self is BlockCode.API else LimitKind[self.name]


DOCUMENTED = frozenset({BlockCode.MINUTE, BlockCode.DAY, BlockCode.CONCURRENT})


# The first and the longest pause for each code, in seconds.
_PAUSES = {
    BlockCode.MINUTE: (60.0, 15 * 60.0),
    BlockCode.DAY: (15 * 60.0, 3600.0),
    BlockCode.CONCURRENT: (2.0, 60.0),
    BlockCode.API: (60.0, 15 * 60.0),
}


def pause_seconds(code: BlockCode, failed_tries: int, told_seconds: float = 0.0) -> float:
    """Return the length of the pause, in seconds, after this number of failed attempts.

    `told_seconds` (`Retry-After`) can lengthen the pause to at most a day. The pause of another API
    is as long as the API says.
    """
    first, longest = _PAUSES[code]
    # Limit the exponent, because large powers of two don't fit in a float.
    pause = min(longest, first * 2.0 ** min(failed_tries, 16))
    if code is BlockCode.API:
        return told_seconds or pause
    return max(pause, min(told_seconds, DAY_SECONDS))


@dataclass(frozen=True)
class Block:
    """The block for a code that the service reported. `until` is the time of the next attempt."""

    code: BlockCode
    since: float
    until: float
    failed_tries: int = 0


@dataclass(frozen=True)
class Blocks:
    """An organization's blocks. A probe is running while `probing_until` is in the future."""

    blocks: tuple[Block, ...] = ()
    probing_until: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.blocks)

    @property
    def longest(self) -> Block | None:
        """The block that ends last, if there is a block. Until it ends, no calls are made."""
        return max(self.blocks, key=lambda block: block.until, default=None)

    def in_the_way_of(self, call_class: CallClass, now: float) -> Block | None:
        """Return the block that prevents a call, if any. After the pause, a probe is allowed."""
        block = self.longest
        if block is None:
            return None
        may_probe = call_class is CallClass.PROBE and now >= max(block.until, self.probing_until)
        return None if may_probe else block

    def refused(
        self, code: BlockCode, now: float, *, probe: bool, told_seconds: float = 0.0
    ) -> "Blocks":
        """Return the updated blocks after another 429.

        A refused probe lengthens the pause, but a refused call that was sent before the block began
        doesn't.
        """
        blocks = {block.code: block for block in self.blocks}
        earlier = blocks.pop(code, None)
        block = earlier or Block(code, since=now, until=now)
        tries = block.failed_tries + bool(probe and earlier)
        pause = pause_seconds(code, tries, told_seconds)
        block = replace(block, until=max(block.until, now + pause), failed_tries=tries)
        return Blocks((*blocks.values(), block), 0.0 if probe else self.probing_until)

    def moved(self, seconds: float) -> "Blocks":
        """Return the same blocks after a correction of the clock."""
        blocks = (
            replace(block, since=block.since + seconds, until=block.until + seconds)
            for block in self.blocks
        )
        return Blocks(tuple(blocks), self.probing_until + seconds)

    def unclear(self, now: float) -> "Blocks":
        """Return the blocks after a probe that failed or couldn't be made, which counts as refused.

        Without this rule, the probes during an outage would use up the daily limit.
        """
        longest = self.longest
        return Blocks() if longest is None else self.refused(longest.code, now, probe=True)


@dataclass(frozen=True)
class Terms:
    """The settings used to grant or decline calls.

    `plan_of` returns an organization's configured plan. `reserve_of` returns how many calls per
    minute and per day to leave for other programs. `apis` has the limits of other APIs.
    """

    plan_of: Callable[[OrganizationKey], Plan]
    reserve_of: Callable[[OrganizationKey], tuple[int, int]] = lambda _key: (0, 0)
    apis: Mapping[str, Limits] = field(default_factory=dict, hash=False)

    def limits_of(self, key: OrganizationKey, plan: Plan) -> Limits:
        """Return the limits of an organization with this plan, or of an API."""
        return self.apis.get(key.organization_id, Limits()) if key.is_api else LIMITS[plan]


@dataclass(frozen=True)
class InUse:
    """The calls that count: minute slots, calls that may still be running, and calls in the day."""

    minute: int = 0
    concurrent: int = 0
    day: int = 0

    def of(self, kind: LimitKind) -> int:
        """Return the number of calls that count against limits of this kind."""
        number: int = getattr(self, kind.value)
        return number


@dataclass(frozen=True)
class NotNow:
    """The reason for declining a call at the time `now`: a block or a limit that is used up.

    `code` is set for a block. Otherwise, `limits` are the limits of one kind that apply, loosest
    first, of which the last is used up. `free_at` is the time to ask again.
    """

    now: float
    limits: Sequence[Limit] = ()
    code: BlockCode | None = None
    free_at: float = 0.0

    @property
    def kind(self) -> LimitKind | None:
        """The kind of the limit that is used up, or None for a block."""
        return self.limits[-1].kind if self.limits else None

    @property
    def is_pause_over(self) -> bool:
        """True if the block now only waits for a test call."""
        return self.code is not None and self.free_at <= self.now

    @property
    def is_share(self) -> bool:
        """True if only a gateway client's share is used up."""
        return bool(self.limits) and self.limits[-1].source is Source.SHARE


# A day that is used up is told before a minute, which is free again sooner.
ORDER = (LimitKind.DAY, LimitKind.MINUTE, LimitKind.CONCURRENT)


def decide(
    call_class: CallClass, now: float, *, limits: Sequence[Limit], in_use: InUse, blocks: Blocks
) -> NotNow | None:
    """Return the reason for declining a call at the time `now`, or None if the call is granted.

    If a limit is used up, the ledger sets `free_at` afterward.
    """
    block = blocks.in_the_way_of(call_class, now)
    if block is not None:
        return NotNow(now, code=block.code, free_at=max(block.until, blocks.probing_until))
    for kind in ORDER:
        its = applying(limits, kind, call_class)
        if its and in_use.of(kind) >= its[-1].most:
            return NotNow(now, its)
    return None


@dataclass(frozen=True)
class IncidentDetail:
    """Details recorded when an incident opens, some of which are updated later.

    `own` maps each kind of limit to the bot's usage and the limit. `possible` is how many of the
    bot's calls the service may have counted, including late ones. `clients` maps gateway clients to
    their calls in the minute and the day. `words` and `sent_code` are the message and the code in
    the service's response. `ended_because` is the reason why calls are no longer possible.
    """

    own: Mapping[str, Sequence[int]] = field(default_factory=dict)
    possible: int = 0
    words: str = ""
    sent_code: int | None = None
    clients: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ended_because: str = ""

    @property
    def is_code_known(self) -> bool:
        """True if the service sent a documented code, which says which limit was exceeded."""
        return self.sent_code in DOCUMENTED


@dataclass(frozen=True)
class Incident:
    """A series of 429s with the same code for one organization. It ends when a call succeeds.

    `organization` is the organization's ID in the database, and `blocks` has its current blocks.
    `lowered` is the limit that the bot applies for a while because of the 429s, if any.
    Alerts are muted until `muted_until`, by the person called `muted_by`.
    """

    id: int
    organization: int
    key: OrganizationKey
    code: int
    opened_at: datetime
    closed_at: datetime | None
    refusals: int
    detail: IncidentDetail
    blocks: Blocks
    lowered: Limit | None = None
    muted_until: float = 0.0
    muted_by: str | None = None
    now: float = 0.0

    @property
    def is_muted(self) -> bool:
        """True if new alerts are muted."""
        return self.muted_until > self.now


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
        refusal = (kind, Source.REFUSAL)
        return next((limit for limit in self.limits if (limit.kind, limit.source) == refusal), None)

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
