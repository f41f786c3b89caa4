"""The card of a request: it says what is stored, and nothing else."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bot.dataclass import dataclass
from bot.model.testusers.approval import State
from bot.model.testusers.changes import Change, apply_change
from bot.model.testusers.requests import Request
from bot.ui import block_kit, text
from bot.ui.message import MESSAGE_CHARACTERS, Message, SlackBlock
from bot.ui.testusers.buttons import request_buttons
from bot.ui.testusers.people import people_of
from bot.ui.testusers.phrases import (
    COMPLETES,
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
    size_of,
    small_print,
    what_failed,
    who,
)

TRIES = 3
ENDED_SHOWN = 5
LINE_OF_MENTIONS = 1000
EVERY_FULL_MEMBER = "*"
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})


@dataclass(frozen=True)
class _Style:
    """How much is said besides who comes and goes, who is named in any.

    `reason_characters` are those of a reason, `names` are approvers, `mentions` who may approve.
    """

    tells_edits: bool = True
    tells_each_end: bool = True
    reason_characters: int = 500
    names: int = 20
    mentions: int = 1000


@dataclass(frozen=True)
class _Mentioned:
    """Users and groups, less the one who asked and may not approve, where that is so."""

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
    notifies: bool = False,
) -> Message:
    """The request as it stands, with the buttons that it has now.

    Args:
        request: As stored.
        mentioned: Users and groups that are mentioned while it waits.
        needed: How many have to.
        allows_self: Whether who asked may approve too.
        notifies: Whether a policy names them, and not their right to approve.
    """
    excepted = None if allows_self else request.requester.slack_user_id
    if not (notifies or request.has_enough_approvals(needed)):
        given = {approval.who.slack_user_id for approval in request.progress.approvals}
        mentioned = [one for one in mentioned if one not in given]
    able = _Mentioned(mentioned, excepted, "Notified:" if notifies else "Approvers:")
    for style in _STYLES:
        body = _blocks(request, able, needed, style)
        if size_of(body) <= MESSAGE_CHARACTERS:
            break
    return Message(_fallback(request, needed), body)


def _blocks(
    request: Request, able: _Mentioned, needed: int, style: _Style
) -> tuple[SlackBlock, ...]:
    if request.state in GIVEN_UP:
        return (
            *block_kit.sections(_given_up(request, needed, style)),
            *small_print(_facts(request)),
        )
    top = [
        *_headline(request, needed, style),
        *people_of(request, tells_each_end=style.tells_each_end),
    ]
    return (
        *block_kit.sections([*top, *quote(request.requested.reason, style.reason_characters)]),
        *small_print([*_facts(request), _until_spread(request, style)]),
        *block_kit.sections(_news(request, style)),
        *_mention(request, able, style),
        *request_buttons(request),
    )


def _fallback(request: Request, needed: int) -> str:
    """What a notification shows."""
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
    """Who wants what, or what became of it, and what is missing for it."""
    if request.state is State.APPLIED:
        return [_applied(request)]
    if request.state is State.SCHEDULED:
        return [f":calendar: {_granted(request, style)}{_starts(request)}", _wanted(request)]
    if request.state is State.APPLYING:
        return [f":gear: {_granted(request, style)} {_trying(request, style)}", _wanted(request)]
    if request.state is State.FAILED:
        return [f"{_failed(request, style)} {_granted(request, style)}", _wanted(request)]
    return [f":hourglass: {_wanted(request)}", *_count(request, needed, style)]


def _wanted(request: Request) -> str:
    return f"*{who(request.requester)}* wants to {change_of(request, name=counted)}"


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
    if tries >= TRIES:
        return f"Checking whether the change went through: {failure}"
    return f"Attempt {tries} of {TRIES} failed: {failure} Trying again."


def _failed(request: Request, style: _Style) -> str:
    failure = text.sentence(request.progress.failure, style.reason_characters)
    mark = ":grey_question:" if request.progress.is_unsure else ":x:"
    return f"{mark} *Failed: {what_failed(request)}.* {failure}"


def _given_up(request: Request, needed: int, style: _Style) -> list[str]:
    """Two lines: what became of it, and why."""
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
    if not given:
        return "nobody approved it in time"
    if given >= needed:
        return f"approved by {approvers(request)}, but not completed in time"
    return f"not enough approvals in time ({given} of {needed})"


def _applied(request: Request) -> str:
    """What is so now, as far as this change goes."""
    if request.requested.without_approval:
        outcome = f":warning: *Applied without approval* by {who(request.requester)}"
    else:
        outcome = ":white_check_mark: *Applied*"
    return f"{outcome}: {effect_of_change(request)}."


def effect_of_change(request: Request) -> str:
    """The effect of an applied change: `+1 can test welcome until 3:57 PM`."""
    change, flow = request.requested.change, flow_name(request.flow)
    if change.additions and not change.removals:
        can = "could" if request.is_over else "can"
        return f"{_subject(change.additions)} {can} test {flow}{_until(request)}"
    if change.removals and not change.additions:
        return f"{_subject(change.removals)} can no longer test {flow}"
    added, removed = len(change.additions), len(change.removals)
    return f"{flow} has changed: {added} added, {removed} removed"


def _subject(identities: Sequence[str]) -> str:
    return in_full(identities[0]) if len(identities) == 1 else how_many(len(identities))


def _until(request: Request) -> str:
    ends = _ends(request)
    return f" until {text.time(ends.pop())}" if len(ends) == 1 else ""


def _ends(request: Request) -> set[datetime]:
    done = request.progress.done
    return set((done.ends_at if done else request.requested.ends).values())


def _facts(request: Request) -> Iterator[str]:
    """The small print: sizes, times, and the ids that are exact."""
    yield _sizes(request)
    if request.state is State.PENDING:
        if request.requested.duration_seconds is not None:
            begins = "start" if request.requested.starts_at else "approval"
            yield f"{text.duration(request.requested.duration_seconds)} from {begins}"
        yield f"expires {text.time(request.expires_at)}"
    else:
        yield f"asked by {who(request.requester)}"
        yield _decided(request)
    yield text.code(request.flow.sid)
    yield f"requester {request.requester.slack_user_id}"


def _decided(request: Request) -> str:
    done = request.progress.done
    at = text.time(done.at if done else request.decided_at or request.created_at)
    if request.state is State.APPLIED and not request.requested.without_approval:
        return f"approved by {approvers(request, 3) or decider(request)} {at}"
    return at


def _sizes(request: Request) -> str:
    done = request.took_effect
    if done is not None:
        return f"{done.size_before} → {how_many(done.size_after)}"
    if request.state in GIVEN_UP:
        return ""
    seen = request.requested.seen
    return f"{len(seen)} → {how_many(len(apply_change(seen, request.requested.change)))}"


def _until_spread(request: Request, style: _Style) -> str:
    """From when to when people go, where each end is too much to say."""
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
    """The grants that ended last, and how many did in all."""
    ended = request.progress.ended
    shown = ended[-ENDED_SHOWN if style.tells_edits else -1 :]
    if len(ended) > len(shown):
        yield f"*Access ended ({len(ended)}), most recent {len(shown)}:*"
    for one in shown:
        gone = " (already removed)" if one.was_gone else ""
        yield f"*Access ended:* {in_full(one.identity)} {text.time(one.at)}{gone}"


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
        f"{verb} {brief(some)}"
        for verb, some in (("added", change.additions), ("removed", change.removals))
        if some
    ]
    return "; ".join(parts)


def _mention(request: Request, able: _Mentioned, style: _Style) -> list[SlackBlock]:
    """Address who may approve: the one mention that the bot makes."""
    if request.state is not State.PENDING:
        return []
    marks = [mention(one) for one in able.ids if one not in {able.excepted, EVERY_FULL_MEMBER}]
    more = len(marks) - style.mentions
    named = marks[: style.mentions] + ([f"and {more} more"] if more > 0 else [])
    if EVERY_FULL_MEMBER in able.ids:
        also = "and " if marks else ""
        excepted = " except the requester" if able.excepted else ""
        named.append(f"{also}any full member{excepted}")
    return block_kit.sections(_wrapped(able.title, named)) if named else []


def _wrapped(first: str, items: Sequence[str]) -> list[str]:
    """Items in lines that fit a section each."""
    lines = [first]
    for item in items:
        if len(lines[-1]) + len(item) < LINE_OF_MENTIONS:
            lines[-1] += f" {item}"
        else:
            lines.append(item)
    return lines
