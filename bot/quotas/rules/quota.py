"""The decision whether a call may be made within the minute, day, and concurrency limits.

The service counts a call at an unknown moment between request and response. A slot of the minute is
therefore free again 60 s after the *response headers*, and an unanswered call counts as answered
after its timeout and a grace period. Proof: suppose that 101 calls arrive within 60 s. When the
last was sent, another of them had been answered more than 60 s earlier, so it had also arrived more
than 60 s earlier, a contradiction. This doesn't depend on the network or on when the service's
windows begin.

Times are Unix timestamps from the database's clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.limits import CallClass, DayUse, LimitKind, Limits, Plan

MINUTE_SECONDS = 60.0
# Covers windows that include both ends, and clocks running at different rates.
SLOT_GUARD_SECONDS = 0.05
SLOT_SECONDS = MINUTE_SECONDS + SLOT_GUARD_SECONDS
# After its timeout, a call may still be in transit or being processed by the service.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings that decide whether a call is granted.

    `plan_of` is the configured plan; `timeout_seconds` is the client's timeout; `reserve_of`
    returns the calls of a minute and of a day that are left to programs outside Gatehouse.
    """

    plan_of: Callable[[OrganizationKey], Plan]
    timeout_seconds: float
    reserve_of: Callable[[OrganizationKey], tuple[int, int]] = lambda _key: (0, 0)

    @property
    def hold_seconds(self) -> float:
        """Return how long the service may still be processing an unanswered call."""
        return self.timeout_seconds + GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class InUse:
    """The minute slots in use, and the unanswered calls.

    `is_stalled` is set while the service seems to hang: calls timed out, and none sent since has
    been answered. The service may process all of them when it recovers.
    """

    minute: int = 0
    concurrent: int = 0
    is_stalled: bool = False


@dataclass(frozen=True, slots=True)
class NotNow:
    """The reason why a call isn't granted at the time `now`: a block, or a limit that is used up.

    A block has a `code`; a limit has a `kind`, and its `used` and `allowed` calls are those of this
    class of callers. `free_at` is when to ask again. `is_share` is set if it is a gateway client's
    share; `is_stalled` while calls are made one at a time because the service doesn't answer.
    """

    now: float
    kind: LimitKind | None = None
    used: int = 0
    allowed: int = 0
    code: BlockCode | None = None
    free_at: float = 0.0
    is_share: bool = False
    is_stalled: bool = False


def decide(
    call_class: CallClass,
    now: float,
    *,
    limits: Limits,
    in_use: InUse,
    day: DayUse,
    blocks: Blocks,
) -> NotNow | None:
    """Return why no other call may be made now; None if it may. `day` has the daily limit.

    The ledger adds the time when a limit has room again.
    """
    block = blocks.in_the_way_of(call_class, now)
    if block is not None:
        return NotNow(now, code=block.code, free_at=max(block.until, blocks.probing_until))
    allowed = replace(limits, day=day.limit).left_to(call_class)
    if day.used >= allowed.day:
        return NotNow(now, LimitKind.DAY, day.used, allowed.day)
    if in_use.minute >= allowed.minute:
        return NotNow(now, LimitKind.MINUTE, in_use.minute, allowed.minute)
    # While the service hangs, probe with one call at a time.
    most = 1 if in_use.is_stalled else allowed.concurrent
    if in_use.concurrent >= most:
        kind, used = LimitKind.CONCURRENT, in_use.concurrent
        return NotNow(now, kind, used, most, is_stalled=in_use.is_stalled)
    return None
