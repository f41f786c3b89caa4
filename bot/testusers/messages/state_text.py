"""Sentences about a request that has moved on: who decided, when, and on what.

Errors are plain text, which can't show times in the reader's zone, so they say how long ago.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.approvals.rules.approval import State
from bot.testusers.rules.requests import Request, Who

NAMED = 3
NAME_CHARACTERS = 60
JUST_NOW = timedelta(minutes=1)
UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))


def state_sentence(request: Request, now: datetime) -> str:
    """Return who decided on the request and how long ago, or that it waits."""
    by, at = _name(request.decided_by), ago(request.decided_at, now)
    approved = (
        "applied this without approval" if request.requested.without_approval else "approved this"
    )
    change = change_in_plain(request)
    already = f"{by} already {approved} {at}: {change}."
    failed = "failed in part" if request.has_failed_in_part else "failed"
    return {
        State.PENDING: f"This request is still waiting for approval: {change}.",
        State.SCHEDULED: f"{already} It starts later.",
        State.APPLYING: f"{already} Gatehouse is updating the list.",
        State.APPLIED: f"{already} It has been applied.",
        State.FAILED: f"{already} It {failed}; approvers can retry it.",
        State.DENIED: f"{by} already denied this {at}: {change}.",
        State.CANCELLED: f"{by} already cancelled this {at}: {change}.",
        State.EXPIRED: f"This request expired {at}: {change}.",
    }[request.state]


def change_in_plain(request: Request) -> str:
    """Return a request's change as plain text: `add +1, +2 to welcome`."""
    change, flow = request.requested.change, request.flow.name
    parts = (
        change.additions and f"add {_names(change.additions)} to {flow}",
        change.removals and f"remove {_names(change.removals)} from {flow}",
    )
    return " and ".join(part for part in parts if part)


def ago(at: datetime | None, now: datetime) -> str:
    """Return the time since then: `just now`, `5 min ago`."""
    if at is None or now - at < JUST_NOW:
        return "just now"
    size, unit = next((size, unit) for size, unit in UNITS if now - at >= size)
    return f"{(now - at) // size} {unit} ago"


def _names(identities: Sequence[str]) -> str:
    shown = ", ".join(identity[:NAME_CHARACTERS] for identity in identities[:NAMED])
    more = len(identities) - NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _name(who: Who | None) -> str:
    return who.name if who else "Nobody"
