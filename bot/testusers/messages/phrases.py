"""Phrases shared by cards, pages and notes about test users."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from bot.approvals.rules import ApprovedByRule, State
from bot.flows.rules import Flow, mask
from bot.permissions import EVERY_FULL_MEMBER
from bot.slack.messages import text
from bot.testusers.rules.applying import OTHER_ENTRIES
from bot.testusers.rules.people import Did, Effect, RequestPerson, Wants
from bot.testusers.rules.requests import Request, Who

BRIEF_COUNT, PLAIN_COUNT = 5, 3
BRIEF_CHARACTERS = 60
IDENTITY_CHARACTERS = 300
RELATED_SHOWN = 3
NOBODY = "*Nobody can approve this now.* Whoever runs Gatehouse can name more approvers."
TOO_MANY = (
    "These are too many people for a button. To change their access, use `/testusers add` for some"
    " of them at a time."
)
JUST_NOW = timedelta(minutes=1)
MARKS = {
    State.PENDING: ":hourglass: *Waiting for approval*",
    State.APPLYING: ":gear: *Updating the list*",
    State.APPLIED: ":white_check_mark: *Applied*",
    State.FAILED: ":x:",
    State.DENIED: ":no_entry: *Denied*",
    State.CANCELLED: ":wastebasket: *Cancelled*",
    State.EXPIRED: ":alarm_clock: *Expired*",
}
# For each effect, the verb, the preposition before the flow, and the adverb before the end.
WORDS = {
    Effect.ADD: ("add", "to", ""),
    Effect.REMOVE: ("remove", "from", ""),
    Effect.KEEP: ("keep", "on", ""),
    Effect.LIMIT: ("keep", "on", " only"),
}

# A function that formats an identity for a reader, shortened to a limit unless it's None.
Show = Callable[[str, int | None], str]
# A function that names several people.
Name = Callable[[Sequence[str], Show], str]

in_full = text.identity


def masked(identity: str, limit: int | None = None) -> str:
    """Format an identity for viewers, who see only the last four characters."""
    return text.code(mask(identity), limit or IDENTITY_CHARACTERS)


def brief(identities: Sequence[str], show: Show = in_full, most: int = BRIEF_COUNT) -> str:
    """Return the first few identities, followed by the number of identities left out."""
    first = ", ".join(show(identity, BRIEF_CHARACTERS) for identity in identities[:most])
    more = len(identities) - most
    return f"{first} and {more} more" if more > 0 else first


def in_plain(identities: Sequence[str], show: Show = in_full) -> str:
    """Return the first few identities in plain text, such as for a button's name."""
    bare = mask if show is masked else str
    return brief(identities, lambda identity, limit: bare(identity)[:limit], PLAIN_COUNT)


def exact(identities: Sequence[str], show: Show) -> str:
    """Return all identities in full, separated by commas."""
    return ", ".join(show(identity, None) for identity in identities)


def counted(identities: Sequence[str], _show: Show) -> str:
    """Return the number of test users instead of their identities."""
    return f"*{how_many(len(identities))}*"


def titled(groups: Mapping[str, Sequence[str]], mark: str = "") -> list[str]:
    """Return a line such as `Already on the list: +1, +2` for each title that has people.

    `mark` is put around the title, such as `*` for bold.
    """
    return [f"{mark}{title}:{mark} {brief(people)}" for title, people in groups.items() if people]


def how_many(number: int) -> str:
    """Return a number with its noun: `1 test user`, `2 test users`."""
    return text.count(number, "test user")


def who(person: Who) -> str:
    """Return a person's name, without mentioning them."""
    return text.escape(person.name, 80)


def names(people: Sequence[Who]) -> str:
    """Return people's names, separated by commas."""
    return text.sentence(", ".join(person.name for person in people))


def through(request: Request) -> str:
    """Return the program that asked in the requester's name: ` (through *ci*)`, or ""."""
    client = request.requested.client
    return f" (through *{text.escape(client)}*)" if client else ""


def asker(request: Request) -> str:
    """Return the name of whoever asked, and the program that did it for them, if any."""
    return f"{who(request.requester)}{through(request)}"


def mentions(holders: Sequence[str]) -> str:
    """Return mentions of people and groups, which notify them. `"*"` notifies nobody."""
    mentioned = list[str]()
    for slack_id in holders:
        mention = f"<!subteam^{slack_id}>" if slack_id.startswith("S") else f"<@{slack_id}>"
        mentioned.append("any full member" if slack_id == EVERY_FULL_MEMBER else mention)
    return " ".join(mentioned)


def rule_named(rule: ApprovedByRule) -> str:
    """Describe the rule that approved a request."""
    longest = text.duration(rule.longest_seconds)
    return (
        f"The rule `auto` in {text.escape(rule.source)} allows at most {longest} of access"
        f" ({rule.used} of {rule.a_day} requests used in the last 24 h)"
    )


def flow_name(flow: Flow) -> str:
    """Return a flow's alias, or its SID if it has no alias."""
    return f"*{text.escape(flow.alias)}*" if flow.alias else text.code(flow.sid)


def alike(request: Request, *, each_end: bool = False) -> list[list[RequestPerson]]:
    """Group the people in a request by how they're affected.

    With `each_end`, people with different ends of access are in different groups. People whose
    requested end had passed are left out, unless there's nobody else.
    """
    groups: dict[object, list[RequestPerson]] = {}
    for person in request.those(Did.OPEN, Did.MADE, Did.FOUND) or request.people:
        ends = each_end and (_term(request, person), _now(request, person))
        groups.setdefault((person.effect, ends), []).append(person)
    return sorted(groups.values(), key=lambda people: [*WORDS].index(people[0].effect))


def lasting(request: Request, people: Sequence[RequestPerson]) -> str:
    """Return the new and the current end of access of people who are affected in the same way."""
    term, *others = dict.fromkeys(_term(request, person) for person in people)
    now, *more = dict.fromkeys(_now(request, person) for person in people)
    only = WORDS[people[0].effect][2]
    return f"{only}{' until different dates' if others else term}{'' if more else now}"


def _now(request: Request, person: RequestPerson) -> str:
    if request.state is not State.PENDING or person.effect not in {Effect.KEEP, Effect.LIMIT}:
        return ""
    end = person.current_end
    return f" (currently until {text.time(end)})" if end else " (currently with no end date)"


def _term(request: Request, person: RequestPerson) -> str:
    if person.wants is Wants.REMOVE:
        return ""
    if end := person.shown_end if person.is_open else person.ends_at:
        return f" until {text.time(end)}"
    if person.shown_seconds is None:
        return " with no end date"
    length = text.duration(person.shown_seconds)
    if person.effect is Effect.ADD:
        return f" for {length}"
    begins = "the change" if request.requested.without_approval else "approval"
    return f" until {length} after {begins}"


def change_of(request: Request, show: Show = in_full, name: Name = brief) -> str:
    """Describe a request's change: `add +1, +2 to welcome for 2 h; remove +3 from welcome`."""
    flow, clauses = flow_name(request.flow), list[str]()
    for people in alike(request, each_end=name is exact):
        verb, preposition, _ = WORDS[people[0].effect]
        whom = name([person.identity for person in people], show)
        clauses.append(f"{verb} {whom} {preposition} {flow}{lasting(request, people)}")
    return f"{'; '.join(clauses)}{from_presets(request)}" if clauses else "nothing"


def from_presets(request: Request) -> str:
    """Return the presets that stand for people: ` (from `@ada`)`, or "" if there are none."""
    presets = ", ".join(text.code(f"@{preset}", 60) for preset in request.requested.presets)
    return f" (from {presets})" if presets else ""


def change_in_plain(request: Request, show: Show = in_full) -> str:
    """Describe a request's change without markup or times: `add +1, +2 to welcome`."""
    clauses = list[str]()
    for people in alike(request):
        verb, preposition, _ = WORDS[people[0].effect]
        does = "change the end date of" if verb == "keep" else verb
        whom = in_plain([person.identity for person in people], show)
        clauses.append(f"{does} {whom} {preposition} {request.flow.name}")
    return " and ".join(clauses)


def undo_in_plain(request: Request) -> str:
    """Describe what undoing a request would do, without markup: `remove +1, +2 from welcome`."""
    groups = dict[str, list[str]]()
    for person in request.people:
        does = (
            "restore the earlier end date of {} on {}" if person.was_listed else "remove {} from {}"
        )
        if person.wants is Wants.REMOVE:
            does = "add {} to {}"
        if person.earlier_end and person.was_listed:
            does += " (no access if the earlier end date has passed)"
        if person.stands:
            groups.setdefault(does, []).append(person.spelling)
    clauses = [does.format(in_plain(people), request.flow.name) for does, people in groups.items()]
    return " and ".join(clauses)


def on_the_list(request: Request) -> dict[str, list[str]]:
    """Say who is on the list after a failed request that has changed something, by title.

    The result is empty for all other requests.
    """
    titles: dict[str, list[str]] = {}
    if request.state is not State.FAILED or not request.has_effect:
        return titles
    for person in request.people:
        is_addition = person.wants is Wants.ADD
        if person.stands or (person.is_open and not (is_addition and request.attempts.is_unsure)):
            title = "On the list now" if is_addition == person.stands else "Not on the list"
            titles.setdefault(title, []).append(person.identity)
    return titles


def outcome_of(request: Request) -> str:
    """Describe a request's state and name the person who decided: `:no_entry: *Denied* by Ada`."""
    state, mark, decided_by = request.state, MARKS[request.state], request.round.decided_by
    by = who(decided_by) if decided_by else "nobody"
    if state is State.PENDING:
        return mark
    if state is State.EXPIRED:
        why = "it wasn't approved in time"
        if request.is_late_at(request.round.decided_at or request.expires_at):
            why = "the requested access would already have ended"
        return f"{mark} because {why}"
    if state in {State.DENIED, State.CANCELLED}:
        return f"{mark} by {by}"
    how = f"approved by {names(request.approvers) or by}"
    if request.requested.without_approval:
        how = f"without approval by {by}"
        if state is State.APPLIED:
            return f":warning: *Applied without approval* by {by}"
    if state is State.FAILED:
        return f"{mark} *Failed: {what_failed(request)}*. {how[0].upper()}{how[1:]}"
    return f"{mark}, {how}"


def summary(request: Request, show: Show) -> str:
    """Describe a request and its outcome for a list of requests."""
    said, change = outcome_of(request), change_of(request, show)
    denial, failure = request.round.denial_reason, request.attempts.failure
    # Reasons can contain identities.
    reads_reasons = show is in_full
    if request.undo is State.APPLIED:
        said += ", later undone"
    if reads_reasons and (why := denial or failure):
        said += f"{': ' if denial else '. '}{text.escape(why, 200)}"
    said += f"\n{change[0].upper()}{change[1:]}"
    said += f" · requested by {asker(request)} {text.time(request.created_at)}"
    if reads_reasons and request.requested.reason:
        said += f" · _{text.escape(request.requested.reason, 200)}_"
    return said


def what_failed(request: Request) -> str:
    """Describe what a failed request has changed, as far as is known."""
    if request.attempts.is_unsure:
        return "not sure whether the change went through"
    if request.attempts.failure.startswith(OTHER_ENTRIES):
        return "the list has unexpected entries"
    return "only part of the change was made" if request.has_effect else "nothing was changed"


def after_all(request: Request) -> str:
    """Return a note if a failed change may still go through, or an empty string if it can't."""
    note = " If the change goes through after all, I'll update the card."
    return note if request.attempts.is_unsure else ""


def warning(words: str | None) -> list[str]:
    """Return a line with the warning of a flow's policy, or none if there's no warning."""
    return [f":warning: {text.escape(words)}"] if words else []


def quote(reason: str, limit: int) -> list[str]:
    """Return a reason as a quotation, or an empty list if there's no reason."""
    return [f"> {text.escape(reason, limit)}"] if reason else []


def state_sentence(request: Request, now: datetime, show: Show) -> str:
    """Describe the last decision on a request, and how long ago it was made, in plain text.

    The exact time is left out, because plain text can't adapt to the reader's time zone.
    """
    state, decided_by, change = (
        request.state,
        request.round.decided_by,
        change_in_plain(request, show),
    )
    elapsed = now - (request.round.decided_at or now)
    when = "just now"
    if elapsed >= JUST_NOW:
        when = f"{text.duration(elapsed // JUST_NOW * 60)} ago"
    if state is State.PENDING:
        return f"This request is still waiting for approval: {change}."
    if state is State.EXPIRED:
        return f"This request expired {when}: {change}."
    retried = request.attempts.retried_by
    if retried and state in {State.APPLYING, State.APPLIED}:
        return f"{retried.name} already retried this request: {change}."
    by = decided_by.name if decided_by else "Nobody"
    did = "applied" if request.requested.without_approval else "approved"
    if state in {State.DENIED, State.CANCELLED}:
        did = state.value
    failed = " It failed. Approvers can retry it." if state is State.FAILED else ""
    return f"{by} already {did} this {when}: {change}.{failed}"


def outdated(request: Request, version: int) -> str:
    """Explain why a click on an older version of a card did nothing, in plain text.

    `version` is 0 if the clicked button is from before cards had versions.
    """
    older = "The button was from an older version of Gatehouse."
    news = " ".join(request.round.news) if version else older
    return f"Nothing was applied. {news} The card is up to date now. Check it, then click again."


def also_open(related: Sequence[Request], *, is_named: bool = True) -> list[str]:
    """Return a line with the other open requests for the same people, or none."""
    others = list[str]()
    for other in related[:RELATED_SHOWN]:
        others.append(f"{change_of(other)}{f', by {asker(other)}' if is_named else ''}")
    if len(related) > RELATED_SHOWN:
        others.append(f"{len(related) - RELATED_SHOWN} more")
    title = ":warning: *Other open requests for the same people:*"
    return [f"{title} {'; '.join(others)}"] if others else []
