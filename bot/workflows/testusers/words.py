"""What is said about a request that has moved on: who decided, and when."""

from datetime import datetime

from bot.model.approval import State
from bot.model.requests import Request, Who


def state_sentence(request: Request) -> str:
    """Return who decided on the request and when, or that it waits."""
    by, at = _name(request.decided_by), _time(request.decided_at)
    started = "started without approval" if request.wish.without_approval else "approved"
    return {
        State.PENDING: "It waits for a decision.",
        State.APPLYING: f"It was {started} by {by} {at} and is on its way.",
        State.APPLIED: f"It was {started} by {by} {at} and is applied.",
        State.FAILED: f"It was {started} by {by} {at}, but it failed.",
        State.DENIED: f"It was denied by {by} {at}.",
        State.CANCELLED: f"It was cancelled by {by} {at}.",
        State.EXPIRED: f"It expired {at}.",
    }[request.state]


def _name(who: Who | None) -> str:
    return who.name if who else "nobody"


def _time(at: datetime | None) -> str:
    return f"at {at:%H:%M} UTC on {at.day} {at:%B}" if at else ""
