"""Records calls to the services, but never the credentials in those calls."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from sandbox.services.faults import Place

KEPT = 100_000


@dataclass
class Call:
    """A call to a service. Times are in seconds and come from the service's clock.

    `counted_at` is the time when the inventory checked this call against its limits. `counted_at`
    is None for calls to other services, and for calls with an incorrect credential or organization.
    `status` is None if no response has been sent. If the call was refused because of a limit,
    `code` is the error code in the response. `in_flight` is the number of calls in progress for the
    organization, including this call if it was admitted.
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
    """Keeps a log of recent calls, oldest first."""

    def __init__(self, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._now = now
        self._changed = changed
        self._numbers = count(1)
        self.calls: list[Call] = []

    def arrive(self, place: Place, method: str, path: str) -> Call:
        """Record a call that has just arrived. `path` does not include the query string."""
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
        """Record the status of a completed call."""
        call.status = status
        self._changed()
