"""The timers of a request.

A job asks this table for the request's next timer, so nothing has to be cancelled when the request
is decided.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Protocol

from bot.approvals.rules.approval import State

UNPOSTED_AFTER = timedelta(minutes=1)
ANNOUNCED_BEFORE = timedelta(hours=1)


class Timed(Protocol):
    """The parts of a request that its timers read.

    `shown_since` is when its card was due in the channel, None while it has none; `next_end` is the
    next end of access to announce.
    """

    @property
    def state(self) -> State: ...  # noqa: D102
    @property
    def created_at(self) -> datetime: ...  # noqa: D102
    @property
    def expires_at(self) -> datetime: ...  # noqa: D102
    @property
    def starts_at(self) -> datetime | None: ...  # noqa: D102
    @property
    def shown_since(self) -> datetime | None: ...  # noqa: D102
    @property
    def next_end(self) -> datetime | None: ...  # noqa: D102
    @property
    def rung(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Patience:
    """The time before people are reminded of a request or it is escalated; None for never."""

    remind_after: timedelta | None = None
    escalate_after: timedelta | None = None


NO_PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that rings once, in these states.

    `of_posted` is whether the card must be in Slack; None where the card doesn't matter.
    """

    name: str
    states: frozenset[State]
    at: Callable[[Timed, Patience], datetime | None]
    of_posted: bool | None = None


@dataclass(frozen=True, slots=True)
class Ring:
    """A timer and its time."""

    at: datetime
    name: str


def _unposted(request: Timed, _: Patience) -> datetime | None:
    return request.shown_since and request.shown_since + UNPOSTED_AFTER


def _remind(request: Timed, patience: Patience) -> datetime | None:
    if patience.remind_after is None:
        return None
    at = request.created_at + patience.remind_after
    return at if at < request.expires_at else None


def _escalate(request: Timed, patience: Patience) -> datetime | None:
    return request.created_at + patience.escalate_after if patience.escalate_after else None


def _announce_end(request: Timed, _: Patience) -> datetime | None:
    return request.next_end and request.next_end - ANNOUNCED_BEFORE


_PENDING = frozenset({State.PENDING})
_OPEN = frozenset({State.PENDING, State.SCHEDULED, State.APPLIED, State.FAILED})
TIMERS = (
    Timer("unposted", _OPEN, _unposted, of_posted=False),
    Timer("remind", _PENDING, _remind, of_posted=True),
    Timer("escalate", _PENDING, _escalate, of_posted=True),
    Timer("expire", _PENDING, lambda request, _: request.expires_at),
    Timer("start", frozenset({State.SCHEDULED}), lambda request, _: request.starts_at),
    Timer("announce_end", frozenset({State.APPLIED, State.FAILED}), _announce_end),
)


def first_look(request: Timed, patience: Patience) -> datetime | None:
    """Return the time to check a new request's timers first."""
    rings = [next_ring(request, patience, is_posted=posted) for posted in (False, True)]
    return min((ring.at for ring in rings if ring is not None), default=None)


def next_ring(request: Timed, patience: Patience, *, is_posted: bool) -> Ring | None:
    """Return the first timer of the request's state that has not rung yet.

    Args:
        request: The request.
        patience: The settings of its flow.
        is_posted: Whether its card is in Slack. Messages in the card's thread wait for it.
    """
    rings = [
        Ring(at, timer.name)
        for timer in TIMERS
        if request.state in timer.states
        and timer.name not in request.rung
        and timer.of_posted in (None, is_posted)
        and (at := timer.at(request, patience)) is not None
    ]
    return min(rings, key=attrgetter("at"), default=None)
