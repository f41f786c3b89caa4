"""Whose turn it is among the gateway's clients: shares, and an order over all processes.

A client that waits stands in a line that all processes share. The next call goes to the client that
holds the fewest slots of the minute; among those that hold as many, to the one that has waited
longest. So nobody is starved, however many calls another one sends.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from bot.dataclass import dataclass
from bot.model.gateway import share_of
from bot.model.quotas.plans import Limits
from bot.model.quotas.quota import Full, Granted, HeldCall, Holdings, LimitKind


@dataclass(frozen=True, slots=True)
class ClientTurn:
    """A call for a client; `is_next` where the line has let it through."""

    client: str
    share: float = 1.0
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class ClientUse:
    """What one client holds now; `others_wait` where a line has formed."""

    minute: int
    concurrent: int
    others_wait: bool = False


@dataclass(frozen=True, slots=True)
class OthersWait:
    """There may be room, and it belongs to those who wait; perhaps there is more at `free_at`."""

    free_at: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call in the line; a smaller ticket has waited longer."""

    ticket: int
    client: str


def within_share(limits: Limits, turn: ClientTurn, use: ClientUse, day: int) -> Full | None:
    """The share that a client has used up, if any; `day` are its own calls of the day."""
    allowed = share_of(limits, turn.share)
    if day >= allowed.day:
        return Full(LimitKind.DAY, day, allowed.day)
    if use.minute >= allowed.minute:
        return Full(LimitKind.MINUTE, use.minute, allowed.minute)
    if use.concurrent >= allowed.concurrent:
        return Full(LimitKind.CONCURRENT, use.concurrent, allowed.concurrent)
    return None


def may_go(granted: Granted, turn: ClientTurn, use: ClientUse) -> Granted | OthersWait:
    """Whether a call that fits may go before those who wait."""
    return OthersWait() if use.others_wait and not turn.is_next else granted


def in_turn(
    waiting: Collection[Waiting], used: Mapping[str, int], left: Mapping[str, int]
) -> list[Waiting]:
    """Those who wait, in the order in which they go.

    Args:
        waiting: All of them, of all processes.
        used: Slots of the minute that each client holds; none where it is not named.
        left: How many calls a client may still make by its share; any number where not named.
    """
    queues: dict[str, list[Waiting]] = {}
    for one in sorted(waiting, key=lambda one: one.ticket, reverse=True):
        queues.setdefault(one.client, []).append(one)
    held, going = Counter(dict(used)), Counter[str]()
    order: list[Waiting] = []
    while ready := [name for name in queues if going[name] < left.get(name, len(waiting))]:
        name = min(ready, key=lambda client: (held[client], queues[client][-1].ticket))
        order.append(queues[name].pop())
        held[name] += 1
        going[name] += 1
        if not queues[name]:
            del queues[name]
    return order


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call of the ledger that holds something, and its client; None for the bot's own."""

    held: HeldCall
    client: str | None


@dataclass(frozen=True, slots=True)
class LineStanding:
    """What the line of an organization is judged by, at one moment.

    `limits` are those in force; `day_used` what is used of the day's; `is_stalled` while the
    service stands still.
    """

    now: float
    limits: Limits
    day_used: int
    calls: Sequence[ClientCall]
    waiting: Sequence[Waiting]
    is_stalled: bool = False

    @property
    def room(self) -> int:
        """How many calls of clients fit now."""
        return max(0, min(self._left_of(kind) for kind in LimitKind))

    def full(self, resets_at: float | None = None) -> Full | None:
        """The limit that is used up, the one that lasts longest first; None while there is room.

        `resets_at` is when the day ends, where the service reported it.
        """
        allowed = {LimitKind.DAY: self._allowed.day, LimitKind.MINUTE: self._allowed.minute}
        allowed[LimitKind.CONCURRENT] = self._allowed.concurrent
        for kind, most in allowed.items():
            if self._left_of(kind) <= 0:
                free_at = resets_at if kind is LimitKind.DAY else self._holdings.free_at(kind, most)
                is_stalled = kind is LimitKind.CONCURRENT and self.is_stalled
                used = most - self._left_of(kind)
                return Full(kind, used, most, free_at, is_stalled=is_stalled)
        return None

    def with_line(self, waiting: Sequence[Waiting]) -> "LineStanding":
        """The same with another line."""
        return replace(self, waiting=waiting)

    @property
    def _allowed(self) -> Limits:
        return share_of(self.limits, 1.0)

    def _left_of(self, kind: LimitKind) -> int:
        held = self._holdings
        return {
            LimitKind.DAY: self._allowed.day - self.day_used,
            LimitKind.MINUTE: self._allowed.minute - len(held.slots),
            LimitKind.CONCURRENT: self._allowed.concurrent - len(held.permits),
        }[kind]

    @property
    def _holdings(self) -> Holdings:
        return Holdings.of([call.held for call in self.calls], self.now)

    def next_ones(self, shares: Mapping[str, float]) -> list[Waiting]:
        """Those who wait, in their order; who has used up a share stands in nobody's way."""
        return in_turn(self.waiting, self._used(), self._left(shares))

    def _used(self) -> Counter[str]:
        slots = (call for call in self.calls if call.held.slot_free_at > self.now)
        return Counter(call.client for call in slots if call.client is not None)

    def _left(self, shares: Mapping[str, float]) -> dict[str, int]:
        used = self._used()
        permits = (call for call in self.calls if call.held.permit_until > self.now)
        running = Counter(call.client for call in permits if call.client is not None)
        left = {}
        for client in {one.client for one in self.waiting}:
            allowed = share_of(self.limits, shares.get(client, 1.0))
            left[client] = min(allowed.minute - used[client], allowed.concurrent - running[client])
        return left

    def free_at(self, ahead: int) -> float:
        """When so many others and one more fit, as far as that is known now."""
        held, most = self._holdings, self._allowed
        minute = held.free_at(LimitKind.MINUTE, max(1, most.minute - ahead))
        concurrent = held.free_at(LimitKind.CONCURRENT, most.concurrent)
        return max(minute, concurrent, self.now)
