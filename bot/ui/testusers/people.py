"""Who a request is about: everybody, with what it does to them."""

from collections.abc import Iterator

from bot.model.testusers.changes import NO_CHANGE
from bot.model.testusers.requests import Request
from bot.ui import text
from bot.ui.testusers.phrases import effect_after, lines_of, term_of


def people_of(request: Request, *, tells_each_end: bool = True) -> list[str]:
    """Exactly who: none is left out, so that nobody approves what they did not see.

    `tells_each_end` is False where people have so many different ends that they do not fit.
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
    """Everybody under the title that many share: first the part that took effect of a failure."""
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
    for identity in requested.end_changes:
        effect = _end_change(request, identity) if tells_each_end else "new end date"
        yield f"Already on the list; {'end date not changed' if is_missing else effect}", identity


def _has_common_end(request: Request) -> bool:
    """Whether all who come have one end, which the card tells elsewhere."""
    done = request.progress.done
    if done is None:
        return bool(term_of(request))
    return len({done.ends_at.get(one) for one in request.requested.change.additions}) <= 1


def _end(request: Request, identity: str) -> str:
    done = request.took_effect
    end = (done and done.ends_at.get(identity)) or request.requested.ends.get(identity)
    return f" until {text.time(end)}" if end else ""


def _end_change(request: Request, identity: str) -> str:
    """What the change does to somebody who is on the list already, and what they have now."""
    until = request.requested.current_ends.get(identity)
    return f"{_effect(request, identity)}{f' (now until {text.time(until)})' if until else ''}"


def _effect(request: Request, identity: str) -> str:
    done = request.progress.done
    end = done.ends_at.get(identity) if done else request.requested.ends.get(identity)
    if end is not None:
        return f"will be removed {text.time(end)}"
    if request.requested.duration_seconds is not None:
        return f"will be removed {effect_after(request)}"
    return "will stay with no end date"
