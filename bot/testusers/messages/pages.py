"""`/testusers list`, `history`, `requests` and `mine`, one page at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from bot.approvals.rules import State
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.message import MESSAGE_CHARACTERS, Message, SlackBlock
from bot.testusers.messages.buttons import (
    cancel_button,
    change_button,
    decision_buttons,
    extend_buttons,
    form_button,
    person_menu,
    undo_button,
)
from bot.testusers.messages.phrases import (
    Show,
    approvers,
    brief,
    change_of,
    decider,
    exact,
    flow_name,
    has_one_term,
    how_many,
    in_full,
    masked,
    names,
    quote,
    reason_of,
    size_of,
    state_of,
    who,
)
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant, RecordedChange, Request


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a flow's `total` test users, with information about them.

    People added by Gatehouse come first; `outside` counts the others. `text` is the filter text, if
    any; `scheduled` are approved requests that start later. `url` is the list's address in the flow
    service, or "".
    """

    flow: Flow
    identities: tuple[str, ...]
    grants: Mapping[str, Grant]
    page: int
    pages: int
    total: int
    outside: int = 0
    text: str = ""
    scheduled: tuple[Request, ...] = ()
    url: str = ""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A flow's requests, newest first, and its latest list changes without a request."""

    flow: Flow
    requests: tuple[Request, ...]
    endings: tuple[RecordedChange, ...]
    page: int
    pages: int
    total: int


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending request, the buttons for the reader, and the number of approvals that it needs."""

    request: Request
    decides: bool
    cancels: bool
    needed: int = 1


@dataclass(frozen=True, slots=True)
class PendingPage:
    """The pending requests, oldest first, and the approved requests that start later."""

    rows: tuple[PendingRow, ...]
    page: int
    pages: int
    total: int
    scheduled: tuple[PendingRow, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantGroup:
    """People who got access to a flow through the same request, until the same time."""

    flow: Flow
    identities: tuple[str, ...]
    ends_at: datetime | None


def grouped(granted: Iterable[tuple[Flow, Grant]]) -> list[GrantGroup]:
    """Return the grants by request and end, in the order of the first grant of each group."""
    groups: dict[tuple[str, datetime | None], list[tuple[Flow, Grant]]] = {}
    for flow, grant in granted:
        groups.setdefault((grant.request_id, grant.ends_at), []).append((flow, grant))
    return [
        GrantGroup(group[0][0], tuple(grant.identity for _, grant in group), ends_at)
        for (_, ends_at), group in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A person's own recent requests, and one page of the access that they requested.

    `people` is the total number of people with that access.
    """

    requests: tuple[Request, ...]
    groups: tuple[GrantGroup, ...]
    people: int
    page: int = 0
    pages: int = 1


EXACT_CHARACTERS = 900
CANCELLABLE = frozenset({State.PENDING, State.SCHEDULED})
REQUESTS_SHOWN = 10
NO_REQUESTS = "You have no requests from the last 7 days."
PEOPLE = "*People you requested access for*"
NO_ACCESS = "You haven't requested access for anyone."
LIST_BLOCK = "testusers.requests."


@dataclass(frozen=True)
class FlowPage:
    """The page of a flow that a button opens, and the filter text."""

    flow: Annotated[str, Field(alias="f")] = ""
    page: Annotated[int, Field(alias="p", ge=0, lt=1_000_000)] = 0
    text: Annotated[str, Field(alias="t")] = ""

    def value(self) -> str:
        """Return the page as a button value."""
        return _FLOW_PAGE.dump_json(self, by_alias=True).decode()

    @classmethod
    def of(cls, value: str) -> "FlowPage":
        """Return the page from a button; an unreadable button gives the first page."""
        try:
            return _FLOW_PAGE.validate_json(value)
        except ValidationError:
            return cls()


_FLOW_PAGE = TypeAdapter(FlowPage)


Row = tuple[str, SlackBlock | None]


def listing(page: ListPage, *, sees_identities: bool, asks: bool = False) -> Message:
    """Return a flow's test users with approver and end of access, and with buttons if `asks`."""
    show = in_full if sees_identities else masked
    flow = flow_name(page.flow)
    matching = f" matching {text.code(page.text, 60)}" if page.text else ""
    below = [block_kit.actions(change_button(page.flow))] if asks else []
    if page.url:
        below.append(block_kit.context(text.link(page.url, "The list in the flow service")))
    wanted = FlowPage(page.flow.name, page.page, page.text)
    below += _turning(ids.TESTUSERS_LIST_PAGE, wanted, page.pages)
    title = f"{flow} has *{how_many(page.total)}*{matching}"
    rows: list[Row] = [
        (title if page.total else f"{flow} has no test users{matching or ' yet'}.", None)
    ]
    is_outside = False
    for identity in page.identities:
        grant, about = page.grants.get(identity), ""
        if grant is not None:
            approved = names(grant.approved_by)
            by = f"approved by {approved}" if approved else "applied without approval"
            until = f"until {text.time(grant.ends_at)}" if grant.ends_at else "no end date"
            about = f" {until} · requested by {who(grant.granted_by)}, {by}"
        elif not is_outside:
            is_outside = True
            rows.append((f"*Added outside Gatehouse* ({page.outside:,})", None))
        has_end = grant is not None and grant.ends_at is not None
        menu = person_menu(page.flow, identity, has_end=has_end) if asks else None
        rows.append((f"• {show(identity)}{about}", menu))
    rows += [(f"Starts later: {change_of(request, show)}", None) for request in page.scheduled]
    return _message(rows, below)


def history(page: HistoryPage, *, sees_identities: bool, asks: bool = False) -> Message:
    """Return a flow's requests and their outcomes, newest first.

    With `asks`, requests that can be undone have an `Undo` button, because their card may have been
    deleted.
    """
    show = in_full if sees_identities else masked
    if not page.total and not page.endings:
        add = [block_kit.actions(change_button(page.flow, "Add a test user"))] if asks else []
        return _message([(f"No requests for {flow_name(page.flow)} yet.", None)], add)
    title = f"*{text.count(page.total, 'request')}* for {flow_name(page.flow)}, newest first"
    rows: list[Row] = [
        (title, None),
        *((_remembered(each, show), undo_button(each) if asks else None) for each in page.requests),
    ]
    for change in page.endings:
        ended = brief(change.ended, show)
        rows.append((f"• {text.time(change.at)} · Access of {ended} ended", None))
    turn = _turning(ids.TESTUSERS_HISTORY_PAGE, FlowPage(page.flow.name, page.page), page.pages)
    return _message(rows, turn)


def _remembered(request: Request, show: Show) -> str:
    reason = reason_of(request, request.requested.reason, show)
    because = f" · _{text.escape(reason, 200)}_" if reason else ""
    change = change_of(request, show, in_flow=False)
    return (
        f"• {text.time(request.created_at)} · {who(request.requester)}: {change}"
        f" · *{state_of(request)}*{_outcome(request, show)}{because}"
    )


def _outcome(request: Request, show: Show) -> str:
    if request.state in {State.PENDING, State.EXPIRED} or request.decided_by is None:
        return ""
    if request.requested.without_approval:
        return f" without approval by {decider(request)}"
    if request.state in {State.DENIED, State.CANCELLED}:
        why = text.escape(reason_of(request, request.progress.denial_reason, show), 200)
        return f" by {decider(request)}{f' ({why})' if why else ''}"
    return f", approved by {approvers(request, 3) or decider(request)}"


def pending(page: PendingPage, channel_id: str, *, sees_identities: bool) -> Message:
    """Return the open requests with the reader's buttons; the cards are in the channel."""
    show = in_full if sees_identities else masked
    later = [
        _with_buttons(
            f":calendar: Approved, starts later: {change_of(row.request, show)}",
            decision_buttons(row.request, decides=False, cancels=row.cancels),
        )
        for row in page.scheduled
    ]
    if not page.total:
        title = "Nothing is waiting for approval. :tada:"
        lines = [title, *(line for line, _ in later)]
        shown = [block_kit.section(title), *(block for _, blocks in later for block in blocks)]
        return Message("\n".join(lines), tuple(shown))
    verb = "needs" if page.total == 1 else "need"
    title = f"*{text.count(page.total, 'request')}* {verb} a decision"
    body: list[SlackBlock] = [block_kit.section(title)]
    lines = [title]
    for number, row in enumerate(page.rows):
        line, shown = waiting(row, channel_id, show)
        lines.append(line)
        # The buttons are named, so that a click can refresh the list.
        name = {"block_id": f"{LIST_BLOCK}{page.page}.{number}"}
        body += [{**block, **(name if block["type"] == "actions" else {})} for block in shown]
    lines += [line for line, _ in later]
    body += [block for _, blocks in later for block in blocks]
    turn = _turning(ids.TESTUSERS_REQUESTS_PAGE, FlowPage("", page.page), page.pages)
    return Message("\n".join(lines), (*body, *turn))


def page_of_block(block_id: str) -> str:
    """Return the request list page that contains this block; "" for any other block."""
    is_listed = block_id.startswith(LIST_BLOCK)
    return block_id.removeprefix(LIST_BLOCK).partition(".")[0] if is_listed else ""


def renewed(decided: Message, pending_now: Message) -> Message:
    """Return the list after a click in it, below the result of the click."""
    shown = decided.slack_blocks or (block_kit.section(decided.text),)
    return Message(
        f"{decided.text}\n{pending_now.text}",
        (*shown, block_kit.divider(), *pending_now.slack_blocks),
    )


def _with_buttons(line: str, buttons: Sequence[SlackBlock]) -> tuple[str, list[SlackBlock]]:
    return line, [*block_kit.sections([line]), *([block_kit.actions(*buttons)] if buttons else [])]


def waiting(row: PendingRow, channel_id: str, show: Show) -> tuple[str, list[SlackBlock]]:
    """Return a pending request as a line and as blocks with its buttons."""
    request, change = row.request, change_of(row.request, show, exact)
    is_exact = len(change) <= EXACT_CHARACTERS and has_one_term(request)
    if not is_exact:
        change = change_of(request, show)
    given = len(request.progress.approvals)
    count = f" · {given} of {row.needed} approvals" if row.needed > 1 else ""
    if request.has_enough_approvals(row.needed):
        count = " · enough approvals: press Approve to complete it"
    expires = f"this request expires {text.time(request.expires_at)}"
    reason = quote(reason_of(request, request.requested.reason, show), 150)
    line = "\n".join([f"*{who(request.requester)}* wants to {change}{count} · {expires}", *reason])
    if not is_exact:
        see = "Decide on" if row.decides else "See"
        line += f"\nThis change is too long to show here. {see} its card in <#{channel_id}>."
    # People can only decide on changes that they see in full.
    decides = row.decides and is_exact
    return _with_buttons(line, decision_buttons(request, decides=decides, cancels=row.cancels))


def own(page: OwnPage, *, sees_identities: bool, asks: bool) -> Message:
    """Return a person's own requests and grants, with buttons if they may ask for changes."""
    show = in_full if sees_identities else masked
    rows = [
        *(_requests(page, show, asks=asks) if page.page == 0 else []),
        (f"{PEOPLE} ({page.people:,})" if page.people else NO_ACCESS, None),
    ]
    body = [block_kit.section(line, button) for line, button in rows]
    lines = [line for line, _ in rows]
    for group in page.groups:
        line, blocks = group_blocks(group, show, asks=asks)
        lines.append(line)
        body += blocks
    if asks and not (page.requests or page.people):
        change = block_kit.button("Change test users", ids.HOME_TESTUSERS, "mine", style="primary")
        body.append(block_kit.actions(change))
    turning = _turning(ids.TESTUSERS_MINE_PAGE, FlowPage("", page.page), page.pages)
    return Message("\n".join(lines), (*body, *turning))


def group_blocks(group: GrantGroup, show: Show, *, asks: bool) -> tuple[str, list[SlackBlock]]:
    """Return people with the same access as a line, and as blocks with buttons to extend access."""
    until = f"until {text.time(group.ends_at)}" if group.ends_at else "no end date"
    many = len(group.identities) > 1
    people = f"*{how_many(len(group.identities))}*" if many else show(group.identities[0])
    names = f": {brief(group.identities, show)}" if many else ""
    line = f"• {people} on {flow_name(group.flow)} · {until}{names}"
    buttons = extend_buttons(group.flow, group.identities)
    if not group.ends_at:
        buttons = [*filter(None, [form_button(group.flow, group.identities, "Set an end date")])]
    return _with_buttons(line, buttons if asks else [])


def _requests(page: OwnPage, show: Show, *, asks: bool) -> list[tuple[str, SlackBlock | None]]:
    if not page.requests:
        return [(NO_REQUESTS, None)]
    rows: list[tuple[str, SlackBlock | None]] = [
        (f"*Your requests* ({len(page.requests):,})", None)
    ]
    for request in page.requests[:REQUESTS_SHOWN]:
        asked_at = text.time(request.created_at)
        line = f"• {change_of(request, show)} · *{state_of(request)}* · {asked_at}"
        can_cancel = asks and request.state in CANCELLABLE
        rows.append((line, cancel_button(request) if can_cancel else None))
    left = len(page.requests) - REQUESTS_SHOWN
    return [*rows, (f"And {left:,} more.", None)] if left > 0 else rows


def _turning(action_id: str, wanted: FlowPage, pages: int) -> list[SlackBlock]:
    buttons = block_kit.turns(
        action_id, wanted.page, pages, lambda to: FlowPage(wanted.flow, to, wanted.text).value()
    )
    if not buttons:
        return []
    return [block_kit.context(f"Page {wanted.page + 1} of {pages}"), block_kit.actions(*buttons)]


def _message(rows: Sequence[Row], below: Sequence[SlackBlock]) -> Message:
    """Return the rows with as many of their buttons as fit, or without buttons."""
    lines = [line for line, _ in rows]
    body = [block_kit.section(line) for line in lines]
    room = MESSAGE_CHARACTERS - size_of(body) - size_of(below)
    if room < 0 or not any(button for _, button in rows):
        body = block_kit.sections(lines)
        if size_of(body) > MESSAGE_CHARACTERS:
            body = block_kit.sections([text.cut(line, 400) for line in lines])
        return Message("\n".join(lines), (*body, *below))
    for number, (line, button) in enumerate(rows):
        size = size_of([button]) if button else 0
        if size <= room:
            body[number] = block_kit.section(line, button)
            room -= size
    return Message("\n".join(lines), (*body, *below))
