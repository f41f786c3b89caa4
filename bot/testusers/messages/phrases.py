"""Phrases shared by cards, pages and notes about test users."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from bot.approvals.rules import State
from bot.slack.messages import text
from bot.testusers.rules.changes import Flow, mask, mask_in
from bot.testusers.rules.requests import Request, Who
from bot.testusers.rules.review import Effect, effects

BRIEF_COUNT = 5
BRIEF_CHARACTERS = 60
# Several short identities share a line: sixty phone numbers take twelve lines.
IDENTITIES_A_LINE = 5
LINE_CHARACTERS = 200

IDENTITY_CHARACTERS = 300
NAMED = 3
NAME_CHARACTERS = 60
JUST_NOW = timedelta(minutes=1)
UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))

# More approvals were needed at that time.
COMPLETES = "Any approver can press Approve to complete it, even if they already did."


class Show(Protocol):
    """Formats an identity as markup for the reader, shortened to the limit, if given."""

    def __call__(self, identity: str, limit: int | None = None, /) -> str: ...  # noqa: D102


Name = Callable[[Sequence[str], Show], str]


def in_full(identity: str, limit: int | None = None, /) -> str:
    """Return an identity for a reader who may see it in full, exactly as it is applied."""
    return text.identity(identity, limit)


def masked(identity: str, limit: int | None = None, /) -> str:
    """Return an identity for a viewer: its last four characters."""
    return text.code(mask(identity), limit or IDENTITY_CHARACTERS)


def who(person: Who) -> str:
    """Return a person by name, without mentioning them."""
    return text.escape(person.name, 80)


def mention(slack_id: str) -> str:
    """Return a mention of a person or a group, which notifies them."""
    return f"<!subteam^{slack_id}>" if slack_id.startswith("S") else f"<@{slack_id}>"


def approvers(request: Request, most: int = 20) -> str:
    """Return a request's approvers, the first ones by name; "" if nobody approved it."""
    given = request.progress.approvals
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return names([approval.who for approval in given[:most]]) + more


def names(people: Sequence[Who]) -> str:
    """Return people by name; with the ID if two have the same name.

    A name that looks like several names is in quotation marks.
    """
    shared = Counter(person.name for person in set(people))
    shown = []
    for person in people:
        is_like_two = "," in person.name or " and " in person.name
        name = f"“{who(person)}”" if is_like_two else who(person)
        has_namesake = shared[person.name] > 1
        shown.append(f"{name} ({text.escape(person.slack_user_id)})" if has_namesake else name)
    return ", ".join(shown)


def rule_of(request: Request) -> str:
    """Return the rule that approved the request, and how much of the daily allowance is used."""
    rule = request.progress.rule
    if rule is None:
        return ""
    longest = text.duration(rule.longest_seconds)
    return (
        f"Rule `auto` of {text.escape(rule.source)}: at most {longest},"
        f" {rule.used} of {rule.a_day} used today"
    )


def decider(request: Request) -> str:
    """Return the name of the person who decided last."""
    return who(request.decided_by) if request.decided_by else "nobody"


def flow_name(flow: Flow) -> str:
    """Return a flow's alias, or its SID if it has none."""
    return f"*{text.escape(flow.alias)}*" if flow.alias else text.code(flow.sid)


def how_many(number: int) -> str:
    """Return `1 test user`, `2 test users`."""
    return text.count(number, "test user")


def brief(identities: Sequence[str], show: Show = in_full) -> str:
    """Return the first few identities and the number of the others."""
    shown = ", ".join(show(identity, BRIEF_CHARACTERS) for identity in identities[:BRIEF_COUNT])
    more = len(identities) - BRIEF_COUNT
    return f"{shown} and {more} more" if more > 0 else shown


def exact(identities: Sequence[str], show: Show = in_full) -> str:
    """Return all identities in full."""
    return ", ".join(show(identity) for identity in identities)


def counted(identities: Sequence[str], _show: Show = in_full) -> str:
    """Return the number of identities."""
    return f"*{how_many(len(identities))}*"


def lines_of(identities: Iterable[str], show: Show = in_full) -> list[str]:
    """Return all identities in full, with several short ones on a line."""
    lines: list[list[str]] = []
    for shown in map(show, identities):
        fits = lines and len(lines[-1]) < IDENTITIES_A_LINE
        if fits and sum(map(len, lines[-1])) + len(shown) < LINE_CHARACTERS:
            lines[-1].append(shown)
        else:
            lines.append([shown])
    return ["  ".join(line) for line in lines]


def change_of(
    request: Request, show: Show = in_full, name: Name = brief, *, in_flow: bool = True
) -> str:
    """Return a request's change: `add +1, +2 to welcome for 2 h; remove +3 from welcome`."""
    requested = request.requested
    added = [
        identity for identity in requested.change.additions if identity not in requested.end_changes
    ]
    flow = flow_name(request.flow)

    def of(preposition: str) -> str:
        return f" {preposition} {flow}" if in_flow else ""

    changed = (
        added and f"add {name(added, show)}{of('to')}{start_of(request)}{term_of(request)}",
        requested.change.removals and f"remove {name(requested.change.removals, show)}{of('from')}",
    )
    parts = [part for part in changed if part]
    for effect, people in end_changes_of(request).items():
        until, now = new_end_of(request, people), current_end_of(request, people)
        names, start = name(people, show), start_of(request)
        if effect is Effect.KEEP:
            parts.append(f"keep {names}{of('on')}{start} with no end date{now}")
        elif effect is Effect.EXTEND:
            parts.append(f"keep {names}{of('on')}{start} until {until}{now}")
        else:
            verb = "shorten" if effect is Effect.SHORTEN else "end"
            ends = f"it ends {until}{now}"
            parts.append(f"{verb} the access of {names}{of('to')}{start}: {ends}")
    return "; ".join(parts) or "nothing"


def end_changes_of(request: Request) -> Mapping[Effect, list[str]]:
    """Return the people who are already on the list, grouped by the change of their end."""
    requested = request.requested
    at = requested.shown_at or request.created_at
    found: dict[Effect, list[str]] = {}
    by_person = effects(requested, requested.change, at)
    for identity in requested.end_changes:
        if identity in by_person:
            found.setdefault(by_person[identity], []).append(identity)
    return found


def new_end_of(request: Request, people: Iterable[str]) -> str:
    """Return the new end of access for people who are already on the list."""
    ends = {request.requested.ends.get(identity) for identity in people}
    end = ends.pop() if len(ends) == 1 else None
    if end is not None:
        return text.time(end)
    if request.requested.duration_seconds is None or len(ends) > 1:
        return "another date"
    return effect_after(request)


def current_end_of(request: Request, people: Iterable[str]) -> str:
    """Return the current end of people's access, while the request is pending."""
    if request.state not in {State.PENDING, State.SCHEDULED}:
        return ""
    ends = {request.requested.current_ends.get(identity) for identity in people}
    end = ends.pop()
    if ends:
        return ""
    return f" (currently until {text.time(end)})" if end else " (currently no end date)"


def start_of(request: Request) -> str:
    """Return the start of a change that hasn't started, or never did."""
    starts_at = request.requested.starts_at
    has_started = request.state in {State.APPLYING, State.APPLIED, State.FAILED}
    return f" from {text.time(starts_at)}" if starts_at and not has_started else ""


def term_of(request: Request) -> str:
    """Return the duration or the end; "" if people have different ones."""
    requested = request.requested
    if requested.duration_seconds is not None:
        return f" for {text.duration(requested.duration_seconds)}"
    ends = {requested.ends.get(identity) for identity in requested.change.additions}
    if len(ends) != 1:
        return ""
    (end,) = ends
    return f" until {text.time(end)}" if end else " with no end date"


def effect_of_change(request: Request) -> str:
    """Return the effect of an applied change: `+1 can test welcome until 3:57 PM`."""
    change, flow = request.requested.change, flow_name(request.flow)
    people = change.identities
    subject = in_full(people[0]) if len(people) == 1 else how_many(len(people))
    if change.additions and change.removals:
        added, removed = len(change.additions), len(change.removals)
        return f"{flow} has changed: {added} added, {removed} removed"
    if change.removals:
        return f"{subject} can no longer test {flow}"
    if request.is_over:
        # Access may have ended early; the card says below how and when.
        return f"{subject} could test {flow}"
    done = request.progress.done
    known = done.ends_at if done else request.requested.ends
    ends = {known.get(identity) for identity in change.additions}
    end = ends.pop()
    until = f" until {text.time(end)}" if end else " with no end date"
    return f"{subject} can test {flow}{'' if ends else until}"


def has_one_term(request: Request) -> bool:
    """Return True if all additions have the same end, so that `term_of` applies to all."""
    requested = request.requested
    if requested.duration_seconds is not None:
        return True
    return len({requested.ends.get(identity) for identity in requested.change.additions}) <= 1


def effect_after(request: Request) -> str:
    """Return an end of access that depends on when the change is applied: `2 h after approval`."""
    approved = "the change" if request.requested.without_approval else "approval"
    if request.requested.starts_at:
        approved = "it starts"
    return f"{text.duration(request.requested.duration_seconds or 0)} after {approved}"


def state_of(request: Request) -> str:
    """Return the state of a request in up to three words."""
    return "partly failed" if request.has_failed_in_part else request.state.value


def what_failed(request: Request) -> str:
    """Return how much of a failed request took effect, as far as known."""
    part, is_unsure = request.progress.part, request.progress.is_unsure
    if part is None:
        return "not sure whether the change went through" if is_unsure else "nothing was changed"
    through, asked = part.change.identities, request.requested.change.identities
    rest = ", not sure about the rest" if is_unsure else ""
    return f"only {len(through):,} of {text.count(len(asked), 'change')} went through{rest}"


def after_all(request: Request) -> str:
    """Return the possible outcome of a failed request whose result is unknown."""
    return " If it goes through after all, I'll update the card." * request.progress.is_unsure


def parts_of(request: Request) -> list[str]:
    """Return a partly failed request's people by outcome; empty for any other request."""
    part, left = request.progress.part, request.left
    if part is None:
        return []
    ends = set(part.ends_at.values())
    until = f" until {text.time(ends.pop())}" if len(ends) == 1 else ""
    groups = {
        f"Added{until}": part.change.additions,
        "Removed": part.change.removals,
        "Not added": [
            identity for identity in left.additions if identity not in request.requested.end_changes
        ],
        "Not removed": left.removals,
        "End date not changed": request.requested.end_changes,
    }
    return [f"{title}: {brief(people)}" for title, people in groups.items() if people]


def reason_of(request: Request, reason: str, show: Show = in_full) -> str:
    """Return a reason; for viewers, identities in it are masked, as everywhere else."""
    if show is in_full:
        return reason
    return mask_in(reason, request.requested.change.identities)


def quote(reason: str, limit: int) -> list[str]:
    """Return a reason as a quotation; "" if it is empty."""
    return [f"> {text.escape(reason, limit)}"] if reason else []


def size_of(value: object) -> int:
    """Return the number of markup characters in blocks, as Slack counts them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, Iterable) else 0


# Errors are plain text, which can't show times in the reader's zone, so they say how long ago.


def state_sentence(request: Request, now: datetime) -> str:
    """Return who decided on the request and how long ago, or that it is pending."""
    by, at = (
        request.decided_by.name if request.decided_by else "Nobody",
        ago(request.decided_at, now),
    )
    approved = (
        "applied this without approval" if request.requested.without_approval else "approved this"
    )
    change = change_in_plain(request)
    already = f"{by} already {approved} {at}: {change}."
    failed = "partly failed" if request.has_failed_in_part else "failed"
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
    new_ends = request.requested.end_changes
    added = [identity for identity in change.additions if identity not in new_ends]
    parts = (
        ("add", added, "to"),
        ("remove", change.removals, "from"),
        ("change the end date of", new_ends, "on"),
    )
    shown = []
    for verb, identities, preposition in parts:
        names = ", ".join(identity[:NAME_CHARACTERS] for identity in identities[:NAMED])
        more = f" and {len(identities) - NAMED} more" if len(identities) > NAMED else ""
        shown += [f"{verb} {names}{more} {preposition} {flow}"] if identities else []
    return " and ".join(shown)


def ago(at: datetime | None, now: datetime) -> str:
    """Return the elapsed time: `just now`, `5 min ago`."""
    if at is None or now - at < JUST_NOW:
        return "just now"
    size, unit = next((size, unit) for size, unit in UNITS if now - at >= size)
    return f"{(now - at) // size} {unit} ago"
