"""The card of a request: it shows what is stored, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.approvals.rules.approval import State
from bot.slack.messages import block_kit, text
from bot.slack.messages.message import MESSAGE_CHARACTERS, Message, SlackBlock
from bot.testusers.messages.buttons import request_buttons
from bot.testusers.messages.people import people_of
from bot.testusers.messages.phrases import (
    COMPLETES,
    after_all,
    approvers,
    brief,
    change_of,
    counted,
    decider,
    flow_name,
    how_many,
    in_full,
    mention,
    quote,
    rule_of,
    size_of,
    small_print,
    what_failed,
    who,
)
from bot.testusers.rules.changes import Change, apply_change
from bot.testusers.rules.requests import Request
from bot.testusers.rules.tries import PAUSES_SECONDS, TRIES

ENDED_SHOWN = 5
RELATED_SHOWN = 3
LINE_OF_MENTIONS = 1000
EVERY_FULL_MEMBER = "*"
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})


@dataclass(frozen=True)
class _Style:
    """The amount of detail on a card, apart from the people who are added and removed.

    `reason_characters` limits a reason, `names` the approvers, `mentions` the people who may
    approve.
    """

    tells_edits: bool = True
    tells_each_end: bool = True
    reason_characters: int = 500
    names: int = 20
    mentions: int = 1000


@dataclass(frozen=True)
class _Mentioned:
    """Users and groups to mention, except the requester where they may not approve."""

    ids: Sequence[str]
    excepted: str | None
    title: str


_STYLES = (
    _Style(),
    _Style(tells_edits=False),
    _Style(tells_edits=False, reason_characters=100, names=3),
    _Style(tells_edits=False, tells_each_end=False, reason_characters=100, names=3, mentions=50),
)


def card(
    request: Request,
    mentioned: Sequence[str],
    needed: int,
    *,
    allows_self: bool = False,
    approvers: str = "",
    related: Sequence[Request] = (),
) -> Message:
    """Return the request as a card, with its current buttons.

    Args:
        request: The request.
        mentioned: Users and groups to mention while it waits.
        needed: The number of approvals it needs.
        allows_self: Whether requesters may approve their own requests.
        approvers: Names of the people who can approve, where a policy mentions others.
        related: Other open requests about the same people.
    """
    excepted = None if allows_self else request.requester.slack_user_id
    if not (approvers or request.has_enough_approvals(needed)):
        given = {approval.who.slack_user_id for approval in request.progress.approvals}
        mentioned = [user_id for user_id in mentioned if user_id not in given]
    can_approve = f"Only {text.escape(approvers, 500)} can approve. Notified:"
    able = _Mentioned(mentioned, excepted, can_approve if approvers else "Approvers:")
    for style in _STYLES:
        body = _blocks(request, able, needed, style, related)
        if size_of(body) <= MESSAGE_CHARACTERS:
            break
    return Message(_fallback(request, needed), body)


def _blocks(
    request: Request,
    able: _Mentioned,
    needed: int,
    style: _Style,
    related: Sequence[Request],
) -> tuple[SlackBlock, ...]:
    if request.state in GIVEN_UP:
        return (
            *block_kit.sections(_given_up(request, needed, style)),
            *small_print(_facts(request)),
        )
    top = [
        *_asks_again(request, style),
        *_headline(request, needed, style),
        *filter(None, [rule_of(request)]),
        *(() if _is_said(request) else people_of(request, tells_each_end=style.tells_each_end)),
    ]
    return (
        *block_kit.sections([*top, *quote(request.requested.reason, style.reason_characters)]),
        *small_print([*_facts(request), _until_spread(request, style)]),
        *block_kit.sections([*_related(request, related, style), *_news(request, style)]),
        *_mention(request, able, style),
        *request_buttons(request),
    )


def _fallback(request: Request, needed: int) -> str:
    """Return the text of a notification."""
    asked = f"{who(request.requester)} wants to {change_of(request)}"
    if request.state is State.PENDING:
        reason = (
            f" ({text.escape(request.requested.reason, 150)})" if request.requested.reason else ""
        )
        return f"{asked}{reason}. Approve or deny?"
    if request.state in GIVEN_UP:
        return _given_up(request, needed, _STYLES[0])[0]
    first = _headline(request, needed, _STYLES[0])[0]
    return f"{first} {who(request.requester)} asked to {change_of(request)}."


def _headline(request: Request, needed: int, style: _Style) -> list[str]:
    """Return who wants what, or the outcome, and what is still missing."""
    if request.state is State.APPLIED:
        return [_applied(request)]
    if request.state is State.SCHEDULED:
        return [f":calendar: {_granted(request, style)}{_starts(request)}", _wanted(request)]
    if request.state is State.APPLYING:
        return [f":gear: {_granted(request, style)} {_trying(request, style)}", _wanted(request)]
    if request.state is State.FAILED:
        return [f"{_failed(request, style)} {_granted(request, style)}", _wanted(request)]
    return [f":hourglass: {_wanted(request)}", *_count(request, needed, style)]


def _asks_again(request: Request, style: _Style) -> list[str]:
    """Return the reason why nothing was applied after an approval."""
    if not request.progress.news or request.state is not State.PENDING:
        return []
    news = text.sentence(" ".join(request.progress.news), style.reason_characters)
    return [f":arrows_counterclockwise: *Asks again*: {news}"]


def _wanted(request: Request) -> str:
    verb = "wants" if request.state is State.PENDING else "asked"
    return f"*{who(request.requester)}* {verb} to {change_of(request, name=counted)}"


def _count(request: Request, needed: int, style: _Style) -> list[str]:
    given = request.progress.approvals
    if not given:
        return [f"{needed} approvals needed."] if needed > 1 else []
    names = approvers(request, style.names)
    if request.has_enough_approvals(needed):
        return [f"*Enough approvals by now* ({names}). {COMPLETES}"]
    left = needed - len(given)
    more = "One more needed." if left == 1 else f"{left} more needed."
    return [f"*{len(given)} of {needed} approvals* ({names}). {more}"]


def _granted(request: Request, style: _Style) -> str:
    if request.requested.without_approval:
        return f"*Without approval*, by {decider(request)}."
    return f"*Approved by {approvers(request, style.names) or decider(request)}.*"


def _starts(request: Request) -> str:
    starts_at = request.requested.starts_at
    return f" Starts {text.time(starts_at)}." if starts_at else ""


def _trying(request: Request, style: _Style) -> str:
    tries = request.progress.tries
    failure = text.sentence(request.progress.failure, style.reason_characters)
    if not tries:
        return "Updating the list …"
    if request.progress.is_unsure or tries >= TRIES:
        return f"{failure} Checking whether the change went through …"
    pause = PAUSES_SECONDS[tries - 1]
    return f"Attempt {tries} of {TRIES} failed: {failure} Trying again in {pause:g} s."


def _failed(request: Request, style: _Style) -> str:
    failure = text.sentence(request.progress.failure, style.reason_characters)
    mark = ":grey_question:" if request.progress.is_unsure else ":x:"
    return f"{mark} *Failed: {what_failed(request)}.* {failure}{after_all(request)}"


def _given_up(request: Request, needed: int, style: _Style) -> list[str]:
    """Return two lines: the outcome, and the reason."""
    mark, outcome = {
        State.DENIED: (":no_entry:", f"*Denied* by {decider(request)}"),
        State.CANCELLED: (":wastebasket:", f"*Cancelled* by {decider(request)}"),
        State.EXPIRED: (":alarm_clock:", f"*Expired*: {_lapse(request, needed)}"),
    }[request.state]
    asked = f"{who(request.requester)} wanted to {change_of(request)}"
    reason = quote(request.progress.denial_reason, style.reason_characters)
    return [f"{mark} {outcome}. {asked}.", *reason]


def _lapse(request: Request, needed: int) -> str:
    given = len(request.progress.approvals)
    if request.change_at(request.decided_at or request.expires_at).is_empty:
        return "the access that it asks for is over already"
    if not given:
        return "nobody approved it in time"
    if given >= needed:
        return f"approved by {approvers(request)}, but not completed in time"
    return f"not enough approvals in time ({given} of {needed})"


def _applied(request: Request) -> str:
    """Return the effect of an applied request."""
    if request.requested.without_approval:
        outcome = f":warning: *Applied without approval* by {who(request.requester)}"
    else:
        by_rule = " by a rule, without a decision" if request.progress.rule else ""
        outcome = f":white_check_mark: *Applied*{by_rule}"
    return f"{outcome}: {effect_of_change(request)}."


def effect_of_change(request: Request) -> str:
    """Return the effect of an applied change: `+1 can test welcome until 3:57 PM`."""
    change, flow = request.requested.change, flow_name(request.flow)
    if change.additions and not change.removals:
        can = "could" if request.is_over else "can"
        return f"{_subject(change.additions)} {can} test {flow}{_until(request)}"
    if change.removals and not change.additions:
        return f"{_subject(change.removals)} can no longer test {flow}"
    added, removed = len(change.additions), len(change.removals)
    return f"{flow} has changed: {added} added, {removed} removed"


def _is_said(request: Request) -> bool:
    """Return True if the headline has the only identity of the request."""
    change = request.requested.change
    return request.state is State.APPLIED and len(change.identities) == 1


def _subject(identities: Sequence[str]) -> str:
    return in_full(identities[0]) if len(identities) == 1 else how_many(len(identities))


def _until(request: Request) -> str:
    done = request.progress.done
    known = done.ends_at if done else request.requested.ends
    ends = {known.get(identity) for identity in request.requested.change.additions}
    if len(ends) != 1:
        return ""
    (end,) = ends
    return f" until {text.time(end)}" if end else " with no end date"


def _facts(request: Request) -> Iterator[str]:
    """Yield the small print: sizes, times, and exact ids."""
    yield _sizes(request)
    if request.state is State.PENDING:
        if request.requested.duration_seconds is not None:
            begins = "start" if request.requested.starts_at else "approval"
            yield f"{text.duration(request.requested.duration_seconds)} from {begins}"
        yield f"expires {text.time(request.expires_at)}"
    else:
        yield f"asked by {who(request.requester)} {text.time(request.created_at)}"
        yield from _decided(request)
    yield text.code(request.flow.sid)
    yield f"requester {request.requester.slack_user_id}"


def _decided(request: Request) -> Iterator[str]:
    done, decided_at = request.progress.done, request.decided_at
    if decided_at is not None and not request.requested.without_approval:
        verb = request.state.value if request.state in GIVEN_UP else "approved"
        by = f" by {approvers(request, 3) or decider(request)}" if done else ""
        yield f"{verb}{by} {text.time(decided_at)}"
    if done is not None:
        yield f"applied {text.time(done.at)}"


def _sizes(request: Request) -> str:
    done = request.took_effect
    if done is not None:
        return f"{done.size_before} → {how_many(done.size_after)}"
    if request.state in GIVEN_UP or request.state is State.FAILED:
        return ""
    requested = request.requested
    # A person who is on the list now but counts as added will be gone when this begins.
    new = set(requested.change.additions).difference(requested.end_changes)
    seen = [identity for identity in requested.seen if identity not in new]
    return f"{len(seen)} → {how_many(len(apply_change(seen, requested.change)))}"


def _related(request: Request, related: Sequence[Request], style: _Style) -> Iterator[str]:
    if not related or request.state not in {State.PENDING, State.SCHEDULED}:
        return
    shown = related[:RELATED_SHOWN] if style.tells_edits else ()
    listed = [f"{change_of(other)} ({who(other.requester)})" for other in shown]
    more = len(related) - len(shown)
    listed += [text.count(more, "more request" if shown else "request")] if more else []
    yield f":warning: *Also open for the same people:* {'; '.join(listed)}"


def _until_spread(request: Request, style: _Style) -> str:
    """Return the range of the ends, where the card can't list each of them."""
    ends = request.requested.ends
    if style.tells_each_end or not ends:
        return ""
    first, last = (text.time(pick(ends.values())) for pick in (min, max))
    return f"until their previous end dates ({len(ends)}, from {first} to {last})"


def _news(request: Request, style: _Style) -> list[str]:
    progress = request.progress
    lines: list[str] = []
    if progress.done is not None:
        already = progress.done.already.without(request.requested.end_changes)
        lines += _done_lines(already, progress.done.outside, style)
    if progress.respelled:
        lines.append(f"Stored by the service as {_named([*progress.respelled.values()], style)}")
    lines += _ended(request, style)
    if progress.superseded and not progress.is_undone:
        names = brief(progress.superseded) if style.tells_edits else len(progress.superseded)
        lines.append(f"*Replaced by a later request:* {names}")
    if progress.overdue:
        why = text.sentence(progress.overdue, min(300, style.reason_characters))
        lines.append(f"*Expired but not removed yet:* {why} Retrying until it works.")
    if progress.undone_by:
        lines.append("*Undone*" if progress.is_undone else "*Undo requested*")
    return lines


def _ended(request: Request, style: _Style) -> Iterator[str]:
    """Yield the most recent ends of grants, and how many grants have ended."""
    ended = request.progress.ended
    shown = ended[-ENDED_SHOWN if style.tells_edits else -1 :]
    if len(ended) > len(shown):
        yield f"*Access ended ({len(ended)}), most recent {len(shown)}:*"
    for end in shown:
        gone = " (already removed)" if end.was_gone else ""
        yield f"*Access ended:* {in_full(end.identity)} {text.time(end.at)}{gone}"


def _done_lines(already: Change, outside: Change, style: _Style) -> Iterator[str]:
    if already.additions:
        yield f"*Already on the list:* {_named(already.additions, style)}"
    if already.removals:
        yield f"*Already gone:* {_named(already.removals, style)}"
    if not outside.is_empty:
        yield f"*Changed by someone else in the meantime (kept):* {_edits(outside, style)}"


def _named(identities: Sequence[str], style: _Style) -> str:
    return brief(identities) if style.tells_edits else str(len(identities))


def _edits(change: Change, style: _Style) -> str:
    if not style.tells_edits:
        return f"{len(change.additions)} added, {len(change.removals)} removed"
    parts = [
        f"{verb} {brief(people)}"
        for verb, people in (("added", change.additions), ("removed", change.removals))
        if people
    ]
    return "; ".join(parts)


def _mention(request: Request, able: _Mentioned, style: _Style) -> list[SlackBlock]:
    """Mention the people who may approve: the only mention that the bot makes."""
    if request.state is not State.PENDING:
        return []
    marks = [
        mention(user_id)
        for user_id in able.ids
        if user_id not in {able.excepted, EVERY_FULL_MEMBER}
    ]
    more = len(marks) - style.mentions
    named = marks[: style.mentions] + ([f"and {more} more"] if more > 0 else [])
    if EVERY_FULL_MEMBER in able.ids:
        also = "and " if marks else ""
        excepted = " except the requester" if able.excepted else ""
        named.append(f"{also}any full member{excepted}")
    return block_kit.sections(_wrapped(able.title, named)) if named else []


def _wrapped(first: str, items: Sequence[str]) -> list[str]:
    """Return the items as lines that fit into a section each."""
    lines = [first]
    for item in items:
        if len(lines[-1]) + len(item) < LINE_OF_MENTIONS:
            lines[-1] += f" {item}"
        else:
            lines.append(item)
    return lines
