"""Simulates the bot's ledger of API calls, but keeps all data in memory."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bot.quotas.rules.limits import (
    DAY_SECONDS,
    STALL,
    LimitKind,
    Limits,
)
from bot.quotas.rules.quota import GRACE_SECONDS, SLOT_SECONDS, Blocks, InUse, NotNow, decide
from bot.services.calls import CallClass


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that still counts toward the per-minute limit and possibly the concurrency limit."""

    slot_free_at: float
    permit_until: float

    @classmethod
    def unanswered(cls, reserved_at: float, timeout_seconds: float) -> "HeldCall":
        """Return a call that has not received a response."""
        over_at = reserved_at + timeout_seconds + GRACE_SECONDS
        return cls(slot_free_at=over_at + SLOT_SECONDS, permit_until=over_at)

    @classmethod
    def answered(cls, headers_at: float, ended_at: float) -> "HeldCall":
        """Return a call whose response has been read."""
        return cls(slot_free_at=headers_at + SLOT_SECONDS, permit_until=ended_at)


@dataclass(frozen=True, slots=True)
class Holdings:
    """Lists the times at which the used slots and permits become free, earliest first."""

    slots: Sequence[float]
    permits: Sequence[float]

    @classmethod
    def of(cls, calls: Collection[HeldCall], now: float) -> "Holdings":
        """Return the slots and permits that `calls` still hold at the time `now`."""
        slots = [call.slot_free_at for call in calls if call.slot_free_at > now]
        permits = [call.permit_until for call in calls if call.permit_until > now]
        return cls(sorted(slots), sorted(permits))

    def free_at(self, kind: LimitKind, allowed: int) -> float:
        """Return the time at which fewer than `allowed` slots or permits will be in use.

        If fewer than `allowed` are already in use, return 0. This method ignores the daily limit.
        """
        free = self.slots if kind is LimitKind.MINUTE else self.permits
        return free[len(free) - allowed] if len(free) >= allowed else 0.0


@dataclass(frozen=True)
class Ticket:
    """The ledger's answer to a caller: either a refusal or the number of the granted call."""

    decision: NotNow | None
    number: int = 0
    in_use: InUse = InUse()  # noqa: RUF009 - it is frozen


class Ledger(Protocol):
    async def reserve(self, now: float, call_class: CallClass) -> Ticket: ...

    async def settle(self, number: int, headers_at: float, ended_at: float) -> None: ...


class ModelLedger:
    """An in-memory ledger that all processes in a simulation share."""

    def __init__(self, limits: Limits, timeout_seconds: float) -> None:
        self._limits, self._timeout = limits, timeout_seconds
        self._hold = timeout_seconds + GRACE_SECONDS
        self._held: dict[int, HeldCall] = {}
        self._unanswered: set[int] = set()
        self._reserved_at: list[float] = []
        self._made_before = 0

    async def reserve(self, now: float, call_class: CallClass) -> Ticket:
        if len(self._held) > 2 * self._limits.minute:
            self._held = {n: call for n, call in self._held.items() if call.slot_free_at > now}
        held = Holdings.of(self._held.values(), now)
        in_use = InUse(len(held.slots), len(held.permits), self._sent(now))
        limits = self._limits.in_force()
        if self._is_stalled(now):
            limits.append(STALL)
        decision = decide(call_class, now, limits=limits, in_use=in_use, blocks=Blocks())
        if decision is not None:
            return Ticket(replace(decision, free_at=self._free_at(decision, held, in_use)))
        self._reserved_at.append(now)
        number = len(self._reserved_at)
        self._held[number] = HeldCall.unanswered(now, self._timeout)
        self._unanswered.add(number)
        return Ticket(None, number, in_use)

    async def settle(self, number: int, headers_at: float, ended_at: float) -> None:
        self._held[number] = HeldCall.answered(headers_at, ended_at)
        self._unanswered.discard(number)

    def _is_stalled(self, now: float) -> bool:
        over = {
            n for n in self._unanswered if n not in self._held or now >= self._held[n].slot_free_at
        }
        self._unanswered -= over
        given_up = [n for n in self._unanswered if self._held[n].permit_until <= now]
        if not given_up:
            return False
        answered = (
            call.permit_until
            for number, call in self._held.items()
            if number not in self._unanswered and call.slot_free_at > now
        )
        return self._reserved_at[max(given_up) - 1] > max(answered, default=-1.0)

    def _sent(self, now: float) -> int:
        begins_at = now - DAY_SECONDS - self._hold
        made = len(self._reserved_at)
        while self._made_before < made and self._reserved_at[self._made_before] <= begins_at:
            self._made_before += 1
        return made - self._made_before

    def _free_at(self, full: NotNow, held: Holdings, in_use: InUse) -> float:
        assert full.kind is not None
        if full.kind is not LimitKind.DAY:
            return held.free_at(full.kind, full.limits[-1].most)
        reserved_at = self._reserved_at[self._made_before + in_use.day - full.limits[-1].most]
        return reserved_at + self._hold + DAY_SECONDS
