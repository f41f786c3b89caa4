"""Services that count arrivals in the ways a service may, in virtual time."""

from collections import deque
from dataclasses import dataclass, field


class FixedWindow:
    """Counts anew at every full minute, `phase` seconds past the clock's."""

    def __init__(self, limit: int, phase: float) -> None:
        self._limit, self._phase = limit, phase
        self._window, self._count = -1, 0

    def accepts(self, now: float) -> bool:
        window = int((now - self._phase) // 60.0)
        if window != self._window:
            self._window, self._count = window, 0
        self._count += 1
        return self._count <= self._limit


class SlidingLog:
    """Counts the arrivals of the last 60 s, both ends included."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._arrivals: deque[float] = deque()

    def accepts(self, now: float) -> bool:
        while self._arrivals and self._arrivals[0] < now - 60.0:
            self._arrivals.popleft()
        self._arrivals.append(now)
        return len(self._arrivals) <= self._limit


@dataclass
class Service:
    """One organization at the service: every rule counts, and calls at work at once."""

    rules: list[FixedWindow | SlidingLog]
    concurrent: int
    arrivals: list[float] = field(default_factory=list)
    refused: int = 0
    at_work: int = 0
    peak: int = 0

    def arrives(self, now: float) -> bool:
        self.arrivals.append(now)
        self.at_work += 1
        self.peak = max(self.peak, self.at_work)
        # Every rule has to see every arrival, hence no short cut.
        verdicts = [rule.accepts(now) for rule in self.rules]
        accepted = all(verdicts) and self.at_work <= self.concurrent
        self.refused += not accepted
        return accepted

    def leaves(self) -> None:
        self.at_work -= 1
