"""What is said about a request that has moved on: who decided, when, and on what.

Errors are plain text, which has no time in the reader's zone: so it says how long ago it was.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.model.testusers.approval import State
from bot.model.testusers.requests import Request, Who

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
    what = change_in_plain(request)
    failed = "failed in part" if request.has_failed_in_part else "failed"
    return {
        State.PENDING: f"This request is still waiting for approval: {what}.",
        State.SCHEDULED: f"{by} already {approved} {at}: {what}. It starts later.",
        State.APPLYING: f"{by} already {approved} {at}: {what}. Gatehouse is updating the list.",
        State.APPLIED: f"{by} already {approved} {at}: {what}. It has been applied.",
        State.FAILED: f"{by} already {approved} {at}: {what}. It {failed}; approvers can retry it.",
        State.DENIED: f"{by} already denied this {at}: {what}.",
        State.CANCELLED: f"{by} already cancelled this {at}: {what}.",
        State.EXPIRED: f"This request expired {at}: {what}.",
    }[request.state]


def change_in_plain(request: Request) -> str:
    """Return what was asked for as plain text: `add +1, +2 to welcome`."""
    change, flow = request.requested.change, request.flow.name
    parts = (
        change.additions and f"add {_names(change.additions)} to {flow}",
        change.removals and f"remove {_names(change.removals)} from {flow}",
    )
    return " and ".join(part for part in parts if part)


def ago(at: datetime | None, now: datetime) -> str:
    """Return how long ago that was: `just now`, `5 min ago`."""
    if at is None or now - at < JUST_NOW:
        return "just now"
    size, unit = next((size, unit) for size, unit in UNITS if now - at >= size)
    return f"{(now - at) // size} {unit} ago"


def _names(identities: Sequence[str]) -> str:
    shown = ", ".join(one[:NAME_CHARACTERS] for one in identities[:NAMED])
    more = len(identities) - NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _name(who: Who | None) -> str:
    return who.name if who else "Nobody"
