"""The people of a request, with its effect on each of them."""

from collections.abc import Iterator

from bot.slack.messages import text
from bot.testusers.messages.phrases import (
    current_end_of,
    end_changes_of,
    lines_of,
    new_end_of,
    term_of,
)
from bot.testusers.rules.changes import NO_CHANGE
from bot.testusers.rules.requests import Request
from bot.testusers.rules.review import Effect


def people_of(request: Request, *, tells_each_end: bool = True) -> list[str]:
    """Return everybody the request names, so that nobody approves what they did not see.

    `tells_each_end` is False where the different ends are too many to fit.
    """
    groups: dict[str, list[str]] = {}
    for title, identity in _titled(request, tells_each_end=tells_each_end):
        groups.setdefault(title, []).append(identity)
    if len(groups) == 1 and not groups.keys().isdisjoint({"Add", "Remove"}):
        return lines_of(next(iter(groups.values())))
    return [
        line
        for title, identities in groups.items()
        for line in (f"*{title} ({len(identities)}):*", *lines_of(identities))
    ]


def _titled(request: Request, *, tells_each_end: bool) -> Iterator[tuple[str, str]]:
    """Return people under shared titles; for a failure, the part that took effect comes first."""
    requested, part = request.requested, request.progress.part
    settled = part.change if part else NO_CHANGE
    for identity in settled.additions:
        yield f"Added{_end(request, identity) if tells_each_end else ''}", identity
    for identity in settled.removals:
        yield "Removed", identity
    is_missing = request.has_failed_in_part
    add, remove = ("Not added", "Not removed") if is_missing else ("Add", "Remove")
    says_end = tells_each_end and not is_missing and not _has_common_end(request)
    for identity in request.left.additions:
        if identity not in requested.end_changes:
            yield f"{add}{_end(request, identity) if says_end else ''}", identity
    for identity in request.left.removals:
        yield remove, identity
    for effect, identities in end_changes_of(request).items():
        for identity in identities:
            becomes = _end_change(request, effect, identity) if tells_each_end else "new end date"
            title = "end date not changed" if is_missing else becomes
            yield f"Already on the list; {title}", identity


def _has_common_end(request: Request) -> bool:
    """Return True if all additions have the same end, which the card shows elsewhere."""
    done = request.progress.done
    if done is None:
        return bool(term_of(request))
    stored = [_stored(request, identity) for identity in request.requested.change.additions]
    return len({done.ends_at.get(identity) for identity in stored}) <= 1


def _stored(request: Request, identity: str) -> str:
    return request.progress.respelled.get(identity, identity)


def _end(request: Request, identity: str) -> str:
    done = request.took_effect
    end = (done and done.ends_at.get(_stored(request, identity))) or request.requested.ends.get(
        identity
    )
    return f" until {text.time(end)}" if end else ""


def _end_change(request: Request, effect: Effect, identity: str) -> str:
    """Return the new and the current end of a person who is on the list already."""
    done, now = request.progress.done, current_end_of(request, [identity])
    if effect is Effect.KEEP:
        return f"stays with no end date{now}"
    end = done and done.ends_at.get(_stored(request, identity))
    until = text.time(end) if end else new_end_of(request, [identity])
    return f"{'stays until' if effect is Effect.EXTEND else 'access ends'} {until}{now}"
