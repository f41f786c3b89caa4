"""When a call may be made: minute, day and concurrency together, decided on values alone.

A call that is sent at one moment and answered at a later one was counted by the service somewhere
in between. Hence a slot of the minute is free again 60 s after the *response headers*, and a call
that was never answered counts as answered when its timeout and a grace have passed. Take any 101
calls that arrive within 60 s: when the last of them was sent, one of the others had been
answered more than 60 s earlier, so it had arrived more than 60 s before. So no 101 calls
arrive within 60 s, whatever the network does and wherever the service's windows begin.

Times are seconds since the epoch by one clock, the database's.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from bot.dataclass import dataclass
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.blocks import BlockCode, Blocks
from bot.model.quotas.days import DayUse
from bot.model.quotas.plans import CallClass, Limits, Plan

MINUTE_SECONDS = 60.0
# Covers windows that include both of their ends, and clocks that differ in rate.
SLOT_GUARD_SECONDS = 0.05
SLOT_SECONDS = MINUTE_SECONDS + SLOT_GUARD_SECONDS
# After its timeout a call may still be on its way, or at work in the service.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What calls are granted by.

    `plan_of` is the plan of an organization where none was set from Slack; `timeout_seconds` after
    which the client gives a call up; `person_minute` how many slots of a minute one person may
    hold, or None for all of them.
    """

    plan_of: Callable[[OrganizationKey], Plan]
    timeout_seconds: float
    person_minute: int | None = None

    @property
    def hold_seconds(self) -> float:
        """How long a call may be at work in the service, where no answer was seen."""
        return self.timeout_seconds + GRACE_SECONDS


class LimitKind(StrEnum):
    """Which of the three limits."""

    MINUTE = "minute"
    DAY = "day"
    CONCURRENT = "concurrent"

    @property
    def in_words(self) -> str:
        """As a label: `minute`, `day`, `at once`."""
        return "at once" if self is LimitKind.CONCURRENT else self.value


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that still holds something: its slot of the minute, and perhaps a permit."""

    slot_free_at: float
    permit_until: float

    @classmethod
    def unanswered(cls, reserved_at: float, timeout_seconds: float) -> "HeldCall":
        """What a call holds from its reservation on, for as long as no answer is seen."""
        over_at = reserved_at + timeout_seconds + GRACE_SECONDS
        return cls(slot_free_at=over_at + SLOT_SECONDS, permit_until=over_at)

    @classmethod
    def answered(cls, headers_at: float, ended_at: float) -> "HeldCall":
        """What a call holds once its headers were seen and its body is read."""
        return cls(slot_free_at=headers_at + SLOT_SECONDS, permit_until=ended_at)


@dataclass(frozen=True, slots=True)
class InUse:
    """Slots of the minute in use, and unanswered calls.

    `is_stalled` while the service seems to stand still: calls were given up and none was answered
    since the newest of these was sent. It may work on all of them when it goes on.
    """

    minute: int = 0
    concurrent: int = 0
    is_stalled: bool = False


@dataclass(frozen=True, slots=True)
class Holdings:
    """When each slot and each permit that is in use is free again (soonest first)."""

    slots: Sequence[float]
    permits: Sequence[float]

    @classmethod
    def of(cls, calls: Collection[HeldCall], now: float) -> "Holdings":
        """Those of `calls` that still hold something at `now`."""
        slots = [call.slot_free_at for call in calls if call.slot_free_at > now]
        permits = [call.permit_until for call in calls if call.permit_until > now]
        return cls(sorted(slots), sorted(permits))

    def free_at(self, kind: LimitKind, allowed: int) -> float:
        """When fewer than `allowed` are in use; 0 when that is so already. Not of the day."""
        return next_free_at(self.slots if kind is LimitKind.MINUTE else self.permits, allowed)


@dataclass(frozen=True, slots=True)
class Granted:
    """The call may be made. The numbers are what is in use without it."""

    minute: int
    day: int
    concurrent: int


@dataclass(frozen=True, slots=True)
class Full:
    """A limit is used up: `used` of `allowed` for this class.

    `free_at` is when the next call of this class fits, as soon as the ledger has told that: it is
    when so many calls as `returning` says hold nothing any more. `is_of_person` says that it is not
    the organization's limit but what one person may use of it, `is_stalled` that the service stands
    still, so that one call at a time is made.
    """

    kind: LimitKind
    used: int
    allowed: int
    free_at: float | None = None
    is_of_person: bool = False
    is_stalled: bool = False

    @property
    def returning(self) -> int:
        """How many calls have to be free again before one more fits."""
        return self.used - self.allowed + 1


@dataclass(frozen=True, slots=True)
class Blocked:
    """The service blocks the organization: the bot itself tries again at `until`."""

    code: BlockCode
    until: float


Decision = Granted | Full | Blocked


def decide(
    call_class: CallClass,
    now: float,
    *,
    limits: Limits,
    in_use: InUse,
    day: DayUse,
    blocks: Blocks,
) -> Decision:
    """Whether one more call may be made now; if not, why.

    `limits.day` is not looked at: `day` has the limit in force.
    """
    block = blocks.in_the_way_of(call_class, now)
    if block is not None:
        return Blocked(code=block.code, until=max(block.until, blocks.probing_until))
    allowed = Limits(limits.minute, day.limit, limits.concurrent).left_to(call_class)
    if in_use.is_stalled:
        # One at a time, to see.
        allowed = replace(allowed, concurrent=1)
    if day.used >= allowed.day:
        return Full(LimitKind.DAY, day.used, allowed.day, day.resets_at)
    if in_use.minute >= allowed.minute:
        return Full(LimitKind.MINUTE, in_use.minute, allowed.minute)
    if in_use.concurrent >= allowed.concurrent:
        is_stalled = in_use.is_stalled
        used, most = in_use.concurrent, allowed.concurrent
        return Full(LimitKind.CONCURRENT, used, most, is_stalled=is_stalled)
    return Granted(in_use.minute, day.used, in_use.concurrent)


def next_free_at(free: Sequence[float], allowed: int) -> float:
    """When fewer than `allowed` are in use, given when each is free again (soonest first).

    0 when that is so already.
    """
    return free[len(free) - allowed] if len(free) >= allowed else 0.0
