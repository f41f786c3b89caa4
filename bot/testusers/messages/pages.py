"""The layout of the `/testusers list`, `history`, `requests`, `mine` and `review` pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.approvals.rules import Act
from bot.flows.rules import Flow
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import Message, Page, SlackBlock, Wanted
from bot.testusers.messages import phrases
from bot.testusers.messages.card import act_buttons, form_button
from bot.testusers.messages.phrases import Show, brief, change_of, flow_name, how_many, in_full
from bot.testusers.rules.people import Access
from bot.testusers.rules.requests import Request

EXACT_CHARACTERS = 900
REQUESTS_SHOWN, OWN_PAGE = 10, 10
NO_REQUESTS = "You have no requests from the last 7 days."
PEOPLE = "*People you requested access for*"
NO_ACCESS = "Nobody has access through your requests."
WITHOUT_END = "Access with no end date"
NOT_COUNTED = f"{WITHOUT_END}: the lists couldn't be read in time."
OUTSIDE = "added outside Gatehouse"
ARRIVING = "being added by Gatehouse"
UNREAD_SHOWN = 3


@dataclass(frozen=True)
class Reader:
    """The permissions of the person who reads a page."""

    sees_identities: bool
    asks: bool = False

    @property
    def show(self) -> Show:
        """The function that formats identities for the reader."""
        return in_full if self.sees_identities else phrases.masked


@dataclass(frozen=True)
class OpenRow:
    """An open request, with the reader's permissions and the number of approvals needed.

    `channel_id` is the channel of its card.
    """

    request: Request
    decides: bool
    cancels: bool
    channel_id: str
    needed: int = 1


# People's access to a flow through the same request and until the same time.
Group = tuple[Flow, list[Access]]


def grouped(granted: Iterable[tuple[Flow, Access]]) -> list[Group]:
    """Group people's access by request and end, in the order of each group's first person."""
    groups: dict[object, Group] = {}
    for flow, access in granted:
        _, alike = groups.setdefault((access.request_id, access.ends_at), (flow, []))
        alike.append(access)
    return [*groups.values()]


@dataclass(frozen=True)
class Entry:
    """An entry of a flow's list, with the access of its person.

    Without access, it was added outside Gatehouse, or `is_arriving` because a POST in doubt adds
    it.
    """

    flow: Flow
    identity: str
    access: Access | None = None
    is_arriving: bool = False


# A line of a page, and its button if it has one.
Row = tuple[str, SlackBlock | None]


def listing(
    flow: Flow, page: Page[Entry], granting: Mapping[str, Request], reader: Reader
) -> Message:
    """Return a page of a flow's test users that shows who approved them and when access ends.

    Those with access come first. `granting` contains the requests that gave the access on the page,
    keyed by ID.
    """
    search = page.wanted.text
    matching = f" matching {text.code(search, 60)}" if search else ""
    title = f"{flow_name(flow)} has *{how_many(page.total)}*{matching}"
    if not page.total:
        title = f"{flow_name(flow)} has no test users{matching or ' yet'}."
        if matching and not reader.sees_identities:
            title += " Viewers can search only for the part of an identity that they see."
    rows: list[Row] = [(title, None)]
    for entry in page.items:
        about = ARRIVING if entry.is_arriving else OUTSIDE
        if access := entry.access:
            about = f"{_until(access.ends_at)} · {_by(granting[access.request_id])}"
        rows.append((f"• {reader.show(entry.identity, None)} · {about}", None))
    below = page.turning(ids.testusers_page("list"))
    if reader.asks:
        below.insert(0, block_kit.actions(*form_button("Change…", flow)))
    return _message(rows, below)


def _by(request: Request) -> str:
    approved = phrases.names(request.approvers)
    by = f"approved by {approved}" if approved else "applied without approval"
    return f"requested by {phrases.asker(request)}, {by}{phrases.from_presets(request)}"


def _until(ends_at: datetime | None) -> str:
    return f"until {text.time(ends_at)}" if ends_at else "no end date"


def history(flow: Flow, page: Page[Request], reader: Reader, *acts: Act) -> Message:
    """Return a flow's requests with their outcomes, newest first.

    Requests have buttons for `acts`, because their cards may have been deleted.
    """
    if not page.total:
        return Message.of(f"There are no requests for {flow_name(flow)} yet.")
    title = f"*{text.count(page.total, 'request')}* for {flow_name(flow)}, newest first"
    rows: list[Row] = [(title, None), *summaries(page.items, reader, *acts)]
    return _message(rows, page.turning(ids.testusers_page("history")))


def summaries(requests: Sequence[Request], reader: Reader, *acts: Act) -> list[Row]:
    """Return each request's summary, with the first of these buttons that the reader can use."""
    rows = list[Row]()
    for request in requests:
        buttons = act_buttons(request, *acts) if reader.asks else []
        rows.append((phrases.summary(request, reader.show), next(iter(buttons), None)))
    return rows


def open_requests(page: Page[OpenRow], reader: Reader) -> Message:
    """Return the open requests, with buttons."""
    verb = "needs" if page.total == 1 else "need"
    title = f"*{text.count(page.total, 'request')}* {verb} a decision"
    message = Message.of(title if page.total else "Nothing is waiting for approval. :tada:")
    for row in page.items:
        message = message.then(waiting(row, reader.show))
    return message.plus(*page.turning(ids.testusers_page("requests")))


def waiting(row: OpenRow, show: Show) -> Message:
    """Return an open request, with the buttons that the reader can use."""
    request, change = row.request, change_of(row.request, show, phrases.exact)
    is_exact = len(change) <= EXACT_CHARACTERS
    by = f"*{phrases.who(request.requester)}*{phrases.through(request)}"
    line = f"{by} wants to {change if is_exact else change_of(request, show)}"
    if row.needed > 1:
        line += f" · {len(request.round.approvals)} of {row.needed} approvals"
    line += f" · this request expires {text.time(request.expires_at)}"
    reason = phrases.quote(request.requested.reason, 150) if show is in_full else []
    line = "\n".join([line, *reason])
    acts = [Act.CANCEL] if row.cancels else []
    if not is_exact:
        line += f"\nThis change is too long to show here. See its card in <#{row.channel_id}>."
    elif row.decides:
        # A change that isn't shown in full can't be decided here.
        acts += [Act.APPROVE, Act.DENY]
    return Message.of(line).with_buttons(*act_buttons(request, *acts, show=show))


def own(
    requests: Sequence[Request], groups: Sequence[Group], wanted: Wanted, reader: Reader
) -> Message:
    """Return a person's requests, and a page of the people they requested access for."""
    page, people = Page.cut(groups, OWN_PAGE, wanted), sum(len(people) for _, people in groups)
    rows = list[Row]()
    if not page.wanted.page:
        rows.append((f"*Your requests* ({len(requests):,})" if requests else NO_REQUESTS, None))
        rows += summaries(requests[:REQUESTS_SHOWN], reader, Act.CANCEL)
        left = len(requests) - REQUESTS_SHOWN
        if left > 0:
            rows.append((f"And {left:,} more.", None))
    rows.append((f"{PEOPLE} ({people:,})" if people else NO_ACCESS, None))
    message = _message(rows, [])
    for group in page.items:
        message = message.then(group_message(group, reader))
    return message.plus(*page.turning(ids.testusers_page("mine")))


def group_message(group: Group, reader: Reader) -> Message:
    """Return the people in a group, with buttons to extend their access."""
    flow, held = group
    identities, ends_at = [access.spelling for access in held], held[0].ends_at
    people = brief(identities, reader.show)
    line = f"on {flow_name(flow)} · {_until(ends_at)}"
    if len(identities) > 1:
        line = f"• *{how_many(len(identities))}* {line}: {people}"
    else:
        line = f"• {people} {line}"
    if not reader.asks:
        return Message.of(line)
    buttons = form_button("Set an end date", flow, identities)
    if ends_at:
        buttons = form_button("Extend", flow, identities, ids.TESTUSERS_EXTEND)
    more = [] if buttons else [phrases.TOO_MANY]
    return Message.of(line, *more).with_buttons(*buttons)


def endless(total: int, unread: Mapping[Flow, str]) -> str:
    """Return how many people have access with no end date, and which flows aren't counted."""
    missing = f" ({text.count(len(unread), 'flow')} can't be read)" if unread else ""
    return f"{WITHOUT_END}: *{how_many(total)}*{missing}"


def review(
    page: Page[Entry],
    unread: Mapping[Flow, str],
    granting: Mapping[str, Request],
    reader: Reader,
) -> Message:
    """Return a page of people whose access has no end date.

    `unread` has the reason why a flow's list can't be read. `granting` contains the requests that
    gave the access on the page, keyed by ID.
    """
    lines = list[str]()
    for flow, reason in list(unread.items())[:UNREAD_SHOWN]:
        why = text.sentence(reason, 250)
        lines.append(f":warning: {flow_name(flow)} is missing here. {why}")
    message = Message.of(endless(page.total, unread), *lines)
    for entry in page.items:
        flow, people, about = entry.flow, [entry.identity], OUTSIDE
        if access := entry.access:
            about = f"since {text.time(access.since)} · {_by(granting[access.request_id])}"
        line = f"• {brief(people, reader.show)} on {flow_name(flow)} · {about}"
        buttons = [
            *form_button("Set an end date", flow, people),
            *form_button("Remove", flow, people, f"{ids.TESTUSERS_FILL}.remove", kind="remove"),
        ]
        message = message.then(Message.of(line).with_buttons(*buttons))
    return message.plus(*page.turning(ids.testusers_page("review")))


def _message(rows: Sequence[Row], below: Sequence[SlackBlock]) -> Message:
    """Return a message with these rows and their buttons. If it'd be too large, rows are cut."""
    lines = [line for line, _ in rows]
    body = [block_kit.section(line, button) for line, button in rows]
    message = Message("\n".join(lines), body).plus(*below)
    if message.is_too_long:
        body = [block_kit.section(text.cut(line, 400), button) for line, button in rows]
    return Message("\n".join(lines), body).plus(*below)
