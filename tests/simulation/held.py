"""The calls that count against a limit, as the model and the simulations keep them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import GRACE_SECONDS, SLOT_SECONDS


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that still counts against the minute limit, and perhaps the concurrency limit."""

    slot_free_at: float
    permit_until: float

    @classmethod
    def unanswered(cls, reserved_at: float, timeout_seconds: float) -> "HeldCall":
        """Return the call as it counts while no answer has arrived."""
        over_at = reserved_at + timeout_seconds + GRACE_SECONDS
        return cls(slot_free_at=over_at + SLOT_SECONDS, permit_until=over_at)

    @classmethod
    def answered(cls, headers_at: float, ended_at: float) -> "HeldCall":
        """Return the call as it counts once its answer has been read."""
        return cls(slot_free_at=headers_at + SLOT_SECONDS, permit_until=ended_at)


@dataclass(frozen=True, slots=True)
class Holdings:
    """The times when the slots and permits in use become free, earliest first."""

    slots: Sequence[float]
    permits: Sequence[float]

    @classmethod
    def of(cls, calls: Collection[HeldCall], now: float) -> "Holdings":
        """Return the slots and permits that `calls` still hold at `now`."""
        slots = [call.slot_free_at for call in calls if call.slot_free_at > now]
        permits = [call.permit_until for call in calls if call.permit_until > now]
        return cls(sorted(slots), sorted(permits))

    def free_at(self, kind: LimitKind, allowed: int) -> float:
        """Return when fewer than `allowed` are in use: 0 for now. Ignores the daily limit."""
        free = self.slots if kind is LimitKind.MINUTE else self.permits
        return free[len(free) - allowed] if len(free) >= allowed else 0.0
