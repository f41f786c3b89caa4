"""Defines faults that tests and people can cause in a service.

A fault can affect all calls or only some calls.

hold = state.faults.add(Fault(FaultKind.HOLD, "flow", method="POST", times=1))
await hold.reached()  # a POST has arrived and is waiting
hold.lift()           # it continues
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """The ways in which a call can go wrong."""

    LATE = "late"  # arrives `seconds` later: it is counted only then
    SLOW = "slow"  # is counted at once and takes `seconds`
    HOLD = "hold"  # waits until lifted, then continues
    HANG = "hang"  # is never answered
    RESET = "reset"  # the connection is reset
    CUT = "cut"  # the work is done, then the connection is closed without an answer
    STATUS = "status"  # answered with `status` and a message
    HTML = "html"  # answered with a web page
    TRUNCATED = "truncated"  # JSON that stops in the middle
    WRONG_TYPES = "wrong_types"  # JSON with values of unexpected types
    CODE = "code"  # answered 200 with `code` and `message` as an error of the inventory
    REDIRECT = "redirect"  # answered 302 to `location`
    DRIP = "drip"  # one byte of the body every `seconds` (0 means 1)
    OTHER_LIST = "other_list"  # the answer shows `identities`, not what is stored


ON_THE_WAY = frozenset({FaultKind.LATE})
ADMITTED = frozenset(FaultKind) - ON_THE_WAY
DELAYS = frozenset({FaultKind.LATE, FaultKind.SLOW, FaultKind.HOLD})
_AFTER_THE_WORK = frozenset(
    {
        FaultKind.CUT,
        FaultKind.TRUNCATED,
        FaultKind.WRONG_TYPES,
        FaultKind.DRIP,
        FaultKind.OTHER_LIST,
    }
)


@dataclass(frozen=True)
class Place:
    """A call's target: the service, the data center, the organization and the flow."""

    service: str
    data_center: str | None = None
    organization_id: str | None = None
    flow_sid: str | None = None


@dataclass(eq=False)
class Fault:
    """A fault that affects calls to `service`.

    If a data center, organization, flow or method is set, the fault affects only matching calls.
    `times` is the number of calls that the fault affects; None means all calls. If `after_work` is
    True, the service reads or stores the list before the fault takes effect. By default, the kind
    of fault determines `after_work`.
    """

    kind: FaultKind
    service: str
    data_center: str | None = None
    organization_id: str | None = None
    flow_sid: str | None = None
    method: str | None = None
    times: int | None = None
    after_work: bool | None = None
    seconds: float = 0.0
    status: int = 500
    code: int = 9
    message: str = "Something went wrong."
    location: str = ""
    identities: tuple[str, ...] = ()
    struck: int = field(default=0, init=False)
    lifted: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _reached: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.after_work is None:
            self.after_work = self.kind in _AFTER_THE_WORK

    def fits(self, place: Place, method: str) -> bool:
        """Return True if this fault affects the call."""
        if self.lifted.is_set() or (self.times is not None and self.struck >= self.times):
            return False
        wanted = (self.data_center, self.organization_id, self.flow_sid, self.method)
        given = (place.data_center, place.organization_id, place.flow_sid, method)
        return self.service == place.service and all(
            want in (None, have) for want, have in zip(wanted, given, strict=True)
        )

    async def reached(self) -> None:
        """Wait until this fault holds a call or makes a call hang."""
        await self._reached.wait()

    async def stand_still(self) -> None:
        """Wait until the fault is lifted."""
        self._reached.set()
        await self.lifted.wait()

    def lift(self) -> None:
        """End the fault, and let held calls continue."""
        self.lifted.set()


class Faults:
    """The current faults."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Add a fault and return it."""
        self._faults.append(fault)
        return fault

    def active(self) -> list[Fault]:
        """Return the faults that can still affect a call, oldest first."""
        self._faults = [fault for fault in self._faults if not fault.lifted.is_set()]
        return [f for f in self._faults if f.times is None or f.struck < f.times]

    def take(self, place: Place, method: str, kinds: frozenset[FaultKind]) -> list[Fault]:
        """Return the faults of the given kinds that affect this call.

        All delays take effect. Of the faults that are not delays, only the newest takes effect.
        This method increases `struck` for each fault that it returns.
        """
        fitting = [f for f in self._faults if f.kind in kinds and f.fits(place, method)]
        others = [fault for fault in fitting if fault.kind not in DELAYS]
        taken = [fault for fault in fitting if fault.kind in DELAYS] + others[-1:]
        for fault in taken:
            fault.struck += 1
        if taken:
            self._changed()
        return taken

    def lift(self) -> None:
        """Lift every fault."""
        for fault in self._faults:
            fault.lift()
        self._changed()
