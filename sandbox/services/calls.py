"""The calls received, without their credentials."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from sandbox.services.faults import Place

KEPT = 100_000


@dataclass
class Call:
    """One call as the service saw it. Times come from the service's clock, in seconds.

    `counted_at` is the time at which the limits counted the call, or None if they did not count it
    (no inventory call, or a wrong credential). `status` is None until the response is sent.
    `code` is the code of a refusal with 429. `in_flight` is the number of the organization's calls
    under way, including this call.
    """

    number: int
    service: str
    data_center: str | None
    organization_id: str | None
    flow_sid: str | None
    method: str
    path: str
    arrived_at: float
    counted_at: float | None = None
    status: int | None = None
    code: int | None = None
    in_flight: int = 0


class CallLog:
    """The latest calls, oldest first."""

    def __init__(self, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._now = now
        self._changed = changed
        self._numbers = count(1)
        self.calls: list[Call] = []

    def arrive(self, place: Place, method: str, path: str) -> Call:
        """Record a call that has just arrived. `path` is without its query."""
        call = Call(
            next(self._numbers),
            place.service,
            place.data_center,
            place.organization_id,
            place.flow_sid,
            method,
            path,
            arrived_at=self._now(),
        )
        self.calls.append(call)
        if len(self.calls) > KEPT:
            del self.calls[: KEPT // 2]
        self._changed()
        return call

    def finish(self, call: Call, status: int | None) -> None:
        """Record how a call ended."""
        call.status = status
        self._changed()
