"""What the simulated bots ask for permission: the model itself, over a plain list of calls."""

from dataclasses import dataclass
from typing import Protocol

from bot.quotas.rules.blocks import Blocks
from bot.quotas.rules.limits import (
    DAY_SECONDS,
    CallClass,
    LimitKind,
    Limits,
    day_use,
    leaves_day_at,
)
from bot.quotas.rules.quota import (
    GRACE_SECONDS,
    Decision,
    Full,
    Granted,
    InUse,
    decide,
)
from tests.simulation.held import HeldCall, Holdings


@dataclass(frozen=True)
class Ticket:
    """A decision, and the number of the call that it grants."""

    decision: Decision
    number: int = 0


class Ledger(Protocol):
    async def reserve(self, now: float, call_class: CallClass) -> Ticket: ...

    async def settle(self, number: int, headers_at: float, ended_at: float) -> None: ...


class ModelLedger:
    """Remembers calls in memory, as all processes of a simulation share it."""

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
        decision = decide(
            call_class,
            now,
            limits=self._limits,
            in_use=InUse(len(held.slots), len(held.permits), self._is_stalled(now)),
            day=day_use(self._limits.day, now, self._sent(now)),
            blocks=Blocks(),
        )
        if isinstance(decision, Full):
            return Ticket(self._with_time(decision, held))
        if not isinstance(decision, Granted):
            return Ticket(decision)
        self._reserved_at.append(now)
        number = len(self._reserved_at)
        self._held[number] = HeldCall.unanswered(now, self._timeout)
        self._unanswered.add(number)
        return Ticket(decision, number)

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

    def _with_time(self, full: Full, held: Holdings) -> Full:
        if full.kind is not LimitKind.DAY:
            free_at = held.free_at(full.kind, full.allowed)
            return Full(full.kind, full.used, full.allowed, free_at)
        reserved_at = self._reserved_at[self._made_before + full.used - full.allowed]
        free_at = leaves_day_at(reserved_at, self._hold)
        return Full(full.kind, full.used, full.allowed, free_at)
