"""`/testusers list`, `history` and `requests`, a page at a time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.model.approval import State
from bot.model.requests import Grant, RecordedChange, Request
from bot.model.testuser_pages import HistoryPage, ListPage, PendingPage
from bot.ui import blocks, ids, paging, text
from bot.ui.message import Message, SlackBlock
from bot.ui.testusers.card import decision_buttons
from bot.ui.testusers.wording import (
    Show,
    approvers,
    brief,
    exact_wish_of,
    flow_name,
    in_full,
    masked,
    reason_of,
    sections,
    size_of,
    who,
    wish_of,
)

MESSAGE_CHARACTERS = 11_000
EXACT_CHARACTERS = 900


@dataclass(frozen=True)
class View:
    """Which page of which flow a button turns to."""

    flow: str = ""
    page: int = 0

    def value(self) -> str:
        """Return it as a button's value."""
        return json.dumps({"f": self.flow, "p": self.page})

    @classmethod
    def of(cls, value: str) -> "View":
        """Read a button's value; anything unreadable is the first page."""
        try:
            data = json.loads(value)
            return cls(str(data["f"]), max(0, int(data["p"])))
        except (ValueError, KeyError, TypeError):
            return cls()


def listing(page: ListPage, *, sees_identities: bool) -> Message:
    """Who may test a flow, granted by whom, until when."""
    show = in_full if sees_identities else masked
    title = f"*{text.count(page.total, 'test user')}* of {flow_name(page.flow)}"
    lines = [_listed(one, page.grants.get(one), show) for one in page.identities]
    turn = _turning(ids.TESTUSERS_LIST_PAGE, page.flow.name, page.page, page.pages)
    return _message([title, *lines], turn)


def _listed(identity: str, grant: Grant | None, show: Show) -> str:
    if grant is None:
        return f"• {show(identity)} not granted by Gatehouse"
    approved = ", ".join(who(one) for one in grant.approved_by)
    by = f"granted by {approved}" if approved else "granted without approval"
    until = f"until {text.time(grant.ends_at)}" if grant.ends_at else "without an end"
    return f"• {show(identity)} asked by {who(grant.granted_by)}, {by}, {until}"


def history(page: HistoryPage, *, sees_identities: bool) -> Message:
    """What was asked on a flow and what became of it, newest first."""
    show = in_full if sees_identities else masked
    title = f"*{text.count(page.total, 'request')}* on {flow_name(page.flow)}, newest first"
    lines = [_remembered(one, show) for one in page.requests]
    endings = [_ending(one, show) for one in page.endings]
    turn = _turning(ids.TESTUSERS_HISTORY_PAGE, page.flow.name, page.page, page.pages)
    return _message([title, *lines, *endings], turn)


def _remembered(request: Request, show: Show) -> str:
    words = reason_of(request, request.wish.reason, show)
    reason = f" _Reason:_ {text.escape(words, 200)}" if words else ""
    outcome = _outcome(request, show)
    created = text.time(request.created_at)
    return (
        f"• {created} {who(request.requester)} asked to {wish_of(request, show)}:"
        f" *{request.state}*{outcome}{reason}"
    )


def _outcome(request: Request, show: Show) -> str:
    """Who decided, in the words of the state that stands before it."""
    if request.state in {State.PENDING, State.EXPIRED} or request.decided_by is None:
        return ""
    by, at = who(request.decided_by), text.time(request.decided_at or request.created_at)
    if request.wish.without_approval:
        return f" without approval by {by} {at}"
    if request.state in {State.DENIED, State.CANCELLED}:
        why = text.escape(reason_of(request, request.progress.denial_reason, show), 200)
        return f" by {by} {at}{f' ({why})' if why else ''}"
    return f", approved by {approvers(request, 3) or by} {at}"


def _ending(change: RecordedChange, show: Show) -> str:
    return f"• {text.time(change.at)} The time of {brief(change.ended, show)} was over"


def pending(page: PendingPage, channel_id: str, *, sees_identities: bool) -> Message:
    """What waits for a decision, with the buttons of who may; the cards are in the channel."""
    if not page.total:
        return _message(["No request waits for a decision."], [])
    show = in_full if sees_identities else masked
    title = f"*{text.count(page.total, 'request')}* waiting for a decision, oldest first"
    body: list[SlackBlock] = [blocks.section(title)]
    lines = [title]
    for row in page.rows:
        wish = exact_wish_of(row.request, show)
        term = _term(row.request)
        is_exact = len(wish) <= EXACT_CHARACTERS and term is not None
        if not is_exact:
            wish = wish_of(row.request, show)
        line = _waiting(row.request, wish + (term or ""), page.needed, show)
        if not is_exact:
            line += f"\nNot all of it fits here: its card in <#{channel_id}> shows it."
            line += " Decide there." if row.decides else ""
        lines.append(line)
        # Nobody decides on what they do not see in full.
        decides = row.decides and is_exact
        buttons = decision_buttons(row.request, decides=decides, cancels=row.cancels)
        body += [*sections([line]), *([blocks.actions(*buttons)] if buttons else [])]
    turn = _turning(ids.TESTUSERS_REQUESTS_PAGE, "", page.page, page.pages)
    return Message(text.cut("\n".join(lines), 3800), (*body, *turn))


def _term(request: Request) -> str | None:
    """For how long, in a few words; None when that is not the same for all who come."""
    wish = request.wish
    if wish.duration_seconds:
        return f" for {text.duration(wish.duration_seconds)}"
    ends = {wish.ends.get(one) for one in wish.change.additions}
    if len(ends) > 1:
        return None
    end = next(iter(ends), None)
    return f" until {text.time(end)}" if end else ""


def _waiting(request: Request, wish: str, needed: int, show: Show) -> str:
    given = len(request.progress.approvals)
    count = f" · {given} of {needed} approvals" if needed > 1 else ""
    words = reason_of(request, request.wish.reason, show)
    reason = f"\n_Reason:_ {text.escape(words, 150)}" if words else ""
    return (
        f"*{who(request.requester)}* asks to {wish}"
        f" on {flow_name(request.flow)}{count}"
        f" · expires {text.time(request.expires_at)}{reason}"
    )


def _turning(action_id: str, flow: str, page: int, pages: int) -> list[SlackBlock]:
    buttons = paging.turns(action_id, page, pages, lambda to: View(flow, to).value())
    if not buttons:
        return []
    return [blocks.context(f"Page {page + 1} of {pages}"), blocks.actions(*buttons)]


def _message(lines: Sequence[str], turning: Sequence[SlackBlock]) -> Message:
    body = sections(lines)
    if size_of(body) > MESSAGE_CHARACTERS:
        body = sections([text.cut(line, 400) for line in lines])
    return Message(text.cut("\n".join(lines), 3800), (*body, *turning))
