"""The timers of a request: reminder, escalation, expiry, and the notice that access ends soon."""

from datetime import datetime, timedelta
from enum import StrEnum

from bot.approvals.rules import State
from bot.testusers.rules.requests import Request

ANNOUNCED_BEFORE = timedelta(hours=1)


class Timer(StrEnum):
    """A timer. Each of them fires once in a round of approval, or once for an end of access."""

    EXPIRE = "expire"
    REMIND = "remind"
    ESCALATE = "escalate"
    ANNOUNCE_END = "announce_end"


def next_timer(
    request: Request, remind_hours: float, escalate_after_seconds: int | None
) -> tuple[datetime, Timer] | None:
    """Return the time and name of the request's next timer, or None if no timer is left.

    The earliest timer fires first, so no reminder is sent if the request expires before it.
    """
    if request.state is not State.PENDING:
        end = request.next_end
        return (end - ANNOUNCED_BEFORE, Timer.ANNOUNCE_END) if end else None
    asked_at = request.round.asked_at or request.created_at
    times = {
        Timer.EXPIRE: request.expires_at,
        Timer.REMIND: asked_at + timedelta(hours=remind_hours),
    }
    if escalate_after_seconds:
        times[Timer.ESCALATE] = asked_at + timedelta(seconds=escalate_after_seconds)
    return min((at, name) for name, at in times.items() if name not in request.round.rung)
