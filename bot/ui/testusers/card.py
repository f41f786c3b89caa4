"""The card of a request: it says what is stored, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.model.approval import State
from bot.model.requests import Request
from bot.model.testusers import Change, apply_change
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock
from bot.ui.testusers.wording import (
    approvers,
    brief,
    flow_name,
    in_full,
    sections,
    size_of,
    who,
    wish_of,
)

# Slack refuses messages of about 12,000 characters in all.
MESSAGE_CHARACTERS = 11_000
MENTIONS = 20
TRIES = 3
ENDED_SHOWN = 5
EVERY_FULL_MEMBER = "*"


@dataclass(frozen=True)
class _Style:
    """How much is said besides who comes and goes, who is named in any.

    `words` are the characters of a reason, `names` are approvers.
    """

    tells_edits: bool = True
    tells_each_end: bool = True
    words: int = 500
    names: int = 20


@dataclass(frozen=True)
class _Able:
    """Who may approve: users and groups, less the one who asked and may not, where that is so."""

    ids: Sequence[str]
    excepted: str | None


_STYLES = (
    _Style(),
    _Style(tells_edits=False),
    _Style(tells_edits=False, words=100, names=3),
    _Style(tells_edits=False, tells_each_end=False, words=100, names=3),
)


def card(
    request: Request, approver_ids: Sequence[str], needed: int, *, allows_self: bool = False
) -> Message:
    """The request as it stands, with the buttons that it has now.

    Args:
        request: As stored.
        approver_ids: Users and groups who may approve; mentioned while it waits.
        needed: How many have to.
        allows_self: Whether who asked may approve too.
    """
    able = _Able(approver_ids, None if allows_self else request.requester.slack_user_id)
    for style in _STYLES:
        body = _blocks(request, able, needed, style)
        if size_of(body) <= MESSAGE_CHARACTERS:
            break
    title = f"{_asked_by(request)} to {wish_of(request)} on {flow_name(request.flow)}"
    return Message(text.cut(f"{_status(request, needed, _STYLES[0])} {title}", 3000), body)


def _blocks(request: Request, able: _Able, needed: int, style: _Style) -> tuple[SlackBlock, ...]:
    return (
        *sections([_status(request, needed, style)]),
        *sections(_facts(request, style)),
        *sections(_people(request, style)),
        *sections(_news(request, style)),
        *_mention(request, able),
        *_buttons(request),
    )


def _asked_by(request: Request) -> str:
    return f"Request of {who(request.requester)}"


def _status(request: Request, needed: int, style: _Style) -> str:
    by = who(request.decided_by) if request.decided_by else "nobody"
    at = text.time(request.decided_at) if request.decided_at else ""
    without = request.wish.without_approval
    approved = f"Without approval, by {by}" if without else f"Approved by {by}"
    failure = text.sentence(request.progress.failure, style.words)
    return {
        State.PENDING: f":hourglass: *Waiting for approval*{_count(request, needed, style)}",
        State.APPLYING: f":gear: *{approved}* {at}, on its way{_trying(request, failure)}",
        State.APPLIED: f":white_check_mark: *{_applied(request, style)}* {_done_at(request)}",
        State.FAILED: f":x: *Failed.* {approved} {at}. {failure}",
        State.DENIED: f":no_entry: *Denied* by {by} {at}{_denial(request, style)}",
        State.CANCELLED: f":wastebasket: *Cancelled* by {by} {at}",
        State.EXPIRED: f":alarm_clock: *Expired* {at}: nobody decided in time",
    }[request.state]


def _count(request: Request, needed: int, style: _Style) -> str:
    given = request.progress.approvals
    if needed == 1 and not given:
        return ""
    names = f" ({approvers(request, style.names)})" if given else ""
    return f": {len(given)} of {needed} approvals{names}"


def _trying(request: Request, failure: str) -> str:
    tries = request.progress.tries
    if not tries:
        return ""
    if tries >= TRIES:
        return f". No answer came, so the list is looked at: {failure}"
    return f". Try {tries} of {TRIES} failed: {failure}"


def _applied(request: Request, style: _Style) -> str:
    by = approvers(request, style.names)
    if request.wish.without_approval:
        return f"Applied without approval, by {who(request.requester)}"
    return f"Applied, approved by {by}" if by else "Applied"


def _done_at(request: Request) -> str:
    done = request.progress.done
    return text.time(done.at) if done else ""


def _denial(request: Request, style: _Style) -> str:
    reason = request.progress.denial_reason
    return f"\n*Why:* {text.escape(reason, style.words)}" if reason else ""


def _facts(request: Request, style: _Style) -> list[str]:
    wish = request.wish
    lines = [
        f"*Flow:* {flow_name(request.flow)}",
        f"*Requested by:* {who(request.requester)} {text.time(request.created_at)}",
        f"*List:* {_sizes(request)}",
    ]
    if wish.reason:
        lines.append(f"*Reason:* {text.escape(wish.reason, style.words)}")
    if wish.duration_seconds:
        lines.append(f"*For:* {text.duration(wish.duration_seconds)}{_until(request)}")
    elif wish.ends and not style.tells_each_end:
        first, last = (text.time(pick(wish.ends.values())) for pick in (min, max))
        who_has = text.count(len(wish.ends), "person", "people")
        lines.append(f"*Until:* the end from before, of {who_has}: from {first} to {last}")
    if request.state is State.PENDING:
        lines.append(f"*Expires:* {text.time(request.expires_at)}")
    return lines


def _sizes(request: Request) -> str:
    done = request.progress.done
    if done is not None:
        return f"{done.size_before} → {done.size_after} identities"
    seen = request.wish.seen
    return f"{len(seen)} → {len(apply_change(seen, request.wish.change))} identities"


def _until(request: Request) -> str:
    ends = set(request.progress.done.ends_at.values()) if request.progress.done else set()
    return f", until {text.clock_time(min(ends))}" if ends else ", starting when it takes effect"


def _people(request: Request, style: _Style) -> list[str]:
    """Exactly who: none is left out, so that nobody approves what they did not see."""
    wish = request.wish
    added = [one for one in wish.change.additions if one not in wish.end_changes]
    lines: list[str] = []
    for title, some in (
        ("Add", added),
        ("Remove", wish.change.removals),
        ("There already; change the end of", wish.end_changes),
    ):
        for end, names in _by_end(request, some, style).items():
            lines.append(f"*{title} ({len(names)}):*{end}")
            lines += [f"• {in_full(one)}" for one in names]
    return lines


def _by_end(request: Request, some: Sequence[str], style: _Style) -> Mapping[str, list[str]]:
    """People by the words about their end, which many share."""
    groups: dict[str, list[str]] = {}
    for one in some:
        groups.setdefault(_end(request, one, style), []).append(one)
    return groups


def _end(request: Request, identity: str, style: _Style) -> str:
    wish = request.wish
    if identity in wish.ends:
        return f" until {text.time(wish.ends[identity])}" if style.tells_each_end else ""
    if identity in wish.end_changes and wish.duration_seconds is None:
        return " from now on without an end"
    return ""


def _news(request: Request, style: _Style) -> list[str]:
    progress, lines = request.progress, []
    if progress.done is not None:
        already = progress.done.already.without(request.wish.end_changes)
        lines += _done_lines(already, progress.done.outside, style)
    lines += _ended(request, style)
    if progress.superseded:
        names = brief(progress.superseded) if style.tells_edits else len(progress.superseded)
        lines.append(f"*Changed by a later request:* {names}")
    if progress.overdue:
        why = text.sentence(progress.overdue, min(300, style.words))
        lines.append(f"*Over, but still on the list:* {why} It is tried again every few seconds.")
    if progress.undone_by:
        lines.append("*Undone* since." if progress.is_undone else "*Undo* was requested.")
    return lines


def _ended(request: Request, style: _Style) -> Iterator[str]:
    """The grants that ended last, and how many did in all."""
    ended = request.progress.ended
    shown = ended[-ENDED_SHOWN if style.tells_edits else -1 :]
    if len(ended) > len(shown):
        yield f"*Ended ({len(ended)}), the last {len(shown)} of them:*"
    for one in shown:
        gone = ", who was gone already" if one.was_gone else ""
        yield f"*Ended:* {in_full(one.identity)} {text.clock_time(one.at)}{gone}"


def _done_lines(already: Change, outside: Change, style: _Style) -> list[str]:
    lines = []
    if not already.is_empty:
        lines.append(f"*Was true already:* {_told(already, style)}")
    if not outside.is_empty:
        edits = _told(outside, style)
        lines.append(f"*Edited by others since the request, and kept:* {edits}")
    return lines


def _told(change: Change, style: _Style) -> str:
    if not style.tells_edits:
        return f"{len(change.additions)} added, {len(change.removals)} removed"
    parts = [
        f"{verb} {brief(some)}"
        for verb, some in (("added", change.additions), ("removed", change.removals))
        if some
    ]
    return "; ".join(parts)


def _mention(request: Request, able: _Able) -> list[SlackBlock]:
    """Address who may approve: the one mention that the bot makes."""
    if request.state is not State.PENDING:
        return []
    marks = [
        f"<!subteam^{one}>" if one.startswith("S") else f"<@{one}>"
        for one in able.ids
        if one not in {able.excepted, EVERY_FULL_MEMBER}
    ]
    named = [" ".join(marks[:MENTIONS])] if marks else []
    if EVERY_FULL_MEMBER in able.ids:
        named.append(f"every full member{', except who asked' if able.excepted else ''}")
    elif len(marks) > MENTIONS:
        named.append(f"{len(marks) - MENTIONS} more")
    return [blocks.section(f"Can approve: {' and '.join(named)}")] if named else []


def _buttons(request: Request) -> list[SlackBlock]:
    buttons = {
        State.PENDING: decision_buttons(request),
        State.FAILED: [_button(request, "Retry", ids.TESTUSERS_RETRY)],
        State.APPLIED: [_button(request, "Undo", ids.TESTUSERS_UNDO)],
    }.get(request.state, [])
    if request.progress.undone_by:
        return []
    return [blocks.actions(*buttons)] if buttons else []


def decision_buttons(
    request: Request, *, decides: bool = True, cancels: bool = True
) -> list[SlackBlock]:
    """`Approve` and `Deny` for approvers, `Cancel` for the requester."""
    deciding = [
        _button(request, "Approve", ids.TESTUSERS_APPROVE, "primary"),
        _button(request, "Deny", ids.TESTUSERS_DENY, "danger"),
    ]
    cancelling = [_button(request, "Cancel", ids.TESTUSERS_CANCEL)]
    return [*(deciding if decides else []), *(cancelling if cancels else [])]


def _button(request: Request, label: str, action_id: str, style: str | None = None) -> SlackBlock:
    spoken = f"{label} the request of {request.requester.name} on {request.flow.name}"
    return blocks.button(label, action_id, request.id, style=style, spoken=spoken)
