"""The card of a request: it says what is stored, and nothing else."""

from collections.abc import Sequence

from bot.model.approval import State
from bot.model.requests import Request
from bot.model.testusers import Change, apply_change
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock
from bot.ui.testusers.wording import (
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


def card(request: Request, approver_ids: Sequence[str], needed: int) -> Message:
    """The request as it stands, with the buttons that it has now.

    Args:
        request: As stored.
        approver_ids: Users and groups who may approve; mentioned while it waits.
        needed: How many have to.
    """
    body = _blocks(request, approver_ids, needed, is_brief=False)
    if size_of(body) > MESSAGE_CHARACTERS:
        body = _blocks(request, approver_ids, needed, is_brief=True)
    title = f"{_asked_by(request)} to {wish_of(request)} on {flow_name(request.flow)}"
    return Message(text.cut(f"{_status(request, needed)} {title}", 3000), body)


def _blocks(
    request: Request, approver_ids: Sequence[str], needed: int, *, is_brief: bool
) -> tuple[SlackBlock, ...]:
    return (
        *sections([_status(request, needed)]),
        *sections(_facts(request)),
        *sections(_people(request)),
        *sections(_news(request, is_brief=is_brief)),
        *_mention(request, approver_ids),
        *_buttons(request),
    )


def _asked_by(request: Request) -> str:
    return f"Request of {who(request.requester)}"


def _status(request: Request, needed: int) -> str:
    by = who(request.decided_by) if request.decided_by else "nobody"
    at = text.time(request.decided_at) if request.decided_at else ""
    without = request.wish.without_approval
    approved = f"Without approval, by {by}" if without else f"Approved by {by}"
    return {
        State.PENDING: f":hourglass: *Waiting for approval*{_count(request, needed)}",
        State.APPLYING: f":gear: *{approved}* {at}, on its way{_trying(request)}",
        State.APPLIED: f":white_check_mark: *{_applied(request)}* {_done_at(request)}",
        State.FAILED: f":x: *Failed.* {approved} {at}. {_reason_of_failure(request)}",
        State.DENIED: f":no_entry: *Denied* by {by} {at}{_denial(request)}",
        State.CANCELLED: f":wastebasket: *Cancelled* by {by} {at}",
        State.EXPIRED: f":alarm_clock: *Expired* {at}: nobody decided in time",
    }[request.state]


def _count(request: Request, needed: int) -> str:
    given = request.progress.approvals
    if needed == 1 and not given:
        return ""
    names = ", ".join(who(one.who) for one in given)
    return f": {len(given)} of {needed} approvals{f' ({names})' if names else ''}"


def _trying(request: Request) -> str:
    progress = request.progress
    if not progress.tries:
        return ""
    failure = text.escape(progress.failure, 500)
    if progress.tries >= TRIES:
        return f". No answer came, so the list is looked at: {failure}"
    return f". Try {progress.tries} of {TRIES} failed: {failure}"


def _applied(request: Request) -> str:
    by = ", ".join(who(one.who) for one in request.progress.approvals)
    if request.wish.without_approval:
        return f"Applied without approval, by {who(request.requester)}"
    return f"Applied, approved by {by}" if by else "Applied"


def _done_at(request: Request) -> str:
    done = request.progress.done
    return text.time(done.at) if done else ""


def _reason_of_failure(request: Request) -> str:
    return text.escape(request.progress.failure, 500)


def _denial(request: Request) -> str:
    reason = request.progress.denial_reason
    return f"\n*Why:* {text.escape(reason, 500)}" if reason else ""


def _facts(request: Request) -> list[str]:
    wish = request.wish
    lines = [
        f"*Flow:* {flow_name(request.flow)}",
        f"*Requested by:* {who(request.requester)} {text.time(request.created_at)}",
        f"*List:* {_sizes(request)}",
    ]
    if wish.reason:
        lines.append(f"*Reason:* {text.escape(wish.reason, 500)}")
    if wish.duration_seconds:
        lines.append(f"*For:* {text.duration(wish.duration_seconds)}{_until(request)}")
    elif wish.ends:
        lines += [f"*Until:* {in_full(one)} {text.time(end)}" for one, end in wish.ends.items()]
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
    return f", until {text.clock_time(min(ends))}" if ends else ", from when the list is changed"


def _people(request: Request) -> list[str]:
    """Exactly who: none is left out, so that nobody approves what they did not see."""
    wish = request.wish
    added = [one for one in wish.change.additions if one not in wish.end_changes]
    lines: list[str] = []
    for title, some in (
        ("Add", added),
        ("Remove", wish.change.removals),
        ("There already; change the end of", wish.end_changes),
    ):
        if some:
            lines += [f"*{title} ({len(some)}):*", *(f"• {in_full(one)}" for one in some)]
    return lines


def _news(request: Request, *, is_brief: bool) -> list[str]:
    progress, lines = request.progress, []
    if progress.done is not None:
        already = progress.done.already.without(request.wish.end_changes)
        lines += _done_lines(already, progress.done.outside, is_brief=is_brief)
    for one in progress.ended[-1:] if is_brief else progress.ended[-5:]:
        gone = ", who was gone already" if one.was_gone else ""
        lines.append(f"*Ended:* {in_full(one.identity)} {text.clock_time(one.at)}{gone}")
    if progress.superseded:
        names = len(progress.superseded) if is_brief else brief(progress.superseded)
        lines.append(f"*Changed by a later request:* {names}")
    if progress.overdue:
        why = text.escape(progress.overdue, 300)
        lines.append(f"*Over, but still on the list:* {why} It is tried again every few seconds.")
    if progress.undone_by:
        lines.append("*Undone* since." if progress.is_undone else "*Undo* was requested.")
    return lines


def _done_lines(already: Change, outside: Change, *, is_brief: bool) -> list[str]:
    lines = []
    if not already.is_empty:
        lines.append(f"*Was true already:* {_told(already, is_brief=is_brief)}")
    if not outside.is_empty:
        edits = _told(outside, is_brief=is_brief)
        lines.append(f"*Edited by others since the request, and kept:* {edits}")
    return lines


def _told(change: Change, *, is_brief: bool) -> str:
    if is_brief:
        return f"{len(change.additions)} added, {len(change.removals)} removed"
    parts = [
        f"{verb} {brief(some)}"
        for verb, some in (("added", change.additions), ("removed", change.removals))
        if some
    ]
    return "; ".join(parts)


def _mention(request: Request, approver_ids: Sequence[str]) -> list[SlackBlock]:
    """Address who may approve: the one mention that the bot makes."""
    if request.state is not State.PENDING:
        return []
    marks = [
        f"<!subteam^{one}>" if one.startswith("S") else f"<@{one}>"
        for one in approver_ids
        if one not in {request.requester.slack_user_id, "*"}
    ]
    return [blocks.section(f"Can approve: {' '.join(marks[:MENTIONS])}")] if marks else []


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
