"""The layout of the `/testusers list`, `history`, `requests`, `mine` and `review` pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from bot.approvals.rules import Act
from bot.flows.rules.flows import Flow
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import MESSAGE_CHARACTERS, ButtonValue, Message, SlackBlock
from bot.testusers.messages import phrases
from bot.testusers.messages.card import (
    act_buttons,
    extend_buttons,
    form_button,
)
from bot.testusers.messages.phrases import Show, brief, change_of, flow_name, who
from bot.testusers.rules.people import Access
from bot.testusers.rules.requests import Request

EXACT_CHARACTERS = 900
REQUESTS_SHOWN = 10
NO_REQUESTS = "You have no requests from the last 7 days."
PEOPLE = "*People you requested access for*"
NO_ACCESS = "Nobody has access through your requests."
WITHOUT_END = "Access with no end date"
NOT_COUNTED = f"{WITHOUT_END}: the lists couldn't be read in time."
OUTSIDE = "added outside Gatehouse"
UNREAD_SHOWN = 3
T = TypeVar("T")


@dataclass(frozen=True)
class FlowPage(ButtonValue):
    """A page requested through a button or a command, with its flow and search text."""

    flow: str = ""
    page: Annotated[int, Field(ge=0, lt=1_000_000)] = 0
    text: str = ""


@dataclass(frozen=True)
class Page(Generic[T]):
    """The items on the `wanted` page, and the total number of items and pages."""

    items: Sequence[T]
    total: int
    pages: int = 1
    wanted: FlowPage = FlowPage()

    @classmethod
    def cut(cls, found: Sequence[T], size: int, wanted: FlowPage) -> "Page[T]":
        """Return the requested page, or the last page if there are fewer pages."""
        pages = block_kit.page_count(len(found), size)
        wanted = replace(wanted, page=min(wanted.page, pages - 1))
        shown = found[wanted.page * size : (wanted.page + 1) * size]
        return cls(shown, len(found), pages, wanted)

    def turning(self, form: str) -> list[SlackBlock]:
        """Return blocks with the page number and page buttons, or none if there's only one page."""
        number, action_id = self.wanted.page, ids.testusers_page(form)
        turns = block_kit.turns(
            action_id, number, self.pages, lambda to: replace(self.wanted, page=to).value()
        )
        count = block_kit.context(f"Page {number + 1} of {self.pages}")
        return [count, block_kit.actions(*turns)] if turns else []


@dataclass(frozen=True)
class Reader:
    """The permissions of the person who reads a page."""

    sees_identities: bool
    asks: bool = False

    @property
    def show(self) -> Show:
        """The function that formats identities for the reader."""
        return phrases.in_full if self.sees_identities else phrases.masked


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


@dataclass(frozen=True)
class AccessGroup:
    """People who have access to a flow through the same request and until the same time."""

    flow: Flow
    identities: tuple[str, ...]
    ends_at: datetime | None


def grouped(granted: Iterable[tuple[Flow, Access]]) -> list[AccessGroup]:
    """Group people's access by request and end, in the order of each group's first person."""
    groups: dict[tuple[str, datetime | None], tuple[Flow, list[str]]] = {}
    for flow, access in granted:
        _, people = groups.setdefault((access.request_id, access.ends_at), (flow, []))
        people.append(access.spelling)
    return [
        AccessGroup(flow, tuple(people), ends_at) for (_, ends_at), (flow, people) in groups.items()
    ]


@dataclass(frozen=True)
class Endless:
    """A person whose access to a flow has no end. Without access, it's from outside Gatehouse."""

    flow: Flow
    identity: str
    access: Access | None


Row = tuple[str, SlackBlock | None]


def listing(
    flow: Flow,
    page: Page[str],
    access: Mapping[str, Access],
    granting: Mapping[str, Request],
    reader: Reader,
) -> Message:
    """Return a page of a flow's test users that shows who approved them and when access ends.

    Args:
        flow: The flow.
        page: The test users on the page. Those with access come first.
        access: The access to the flow, keyed by spelling.
        granting: The requests that gave the access on the page, keyed by ID.
        reader: The reader's permissions.
    """
    text_ = page.wanted.text
    matching = f" matching {text.code(text_, 60)}" if text_ else ""
    title = f"{flow_name(flow)} has *{phrases.how_many(page.total)}*{matching}"
    nobody = f"{flow_name(flow)} has no test users{matching or ' yet'}."
    if matching and not reader.sees_identities:
        nobody += " Viewers can search only for the part of an identity that they see."
    rows: list[Row] = [(title if page.total else nobody, None)]
    for identity in page.items:
        about = OUTSIDE
        if held := access.get(identity):
            about = f"{_until(held.ends_at)} · {_by(granting[held.request_id])}"
        rows.append((f"• {reader.show(identity)} · {about}", None))
    below = block_kit.row(form_button("Change…", flow) if reader.asks else [])
    return _message(rows, [*below, *page.turning("list")])


def _by(request: Request) -> str:
    approved = phrases.names(request.approvers)
    by = f"approved by {approved}" if approved else "applied without approval"
    presets = phrases.from_presets(request.requested.presets)
    return f"requested by {phrases.asker(request)}, {by}{presets}"


def _until(ends_at: datetime | None) -> str:
    return f"until {text.time(ends_at)}" if ends_at else "no end date"


def history(flow: Flow, page: Page[Request], reader: Reader) -> Message:
    """Return a flow's requests with their outcomes, newest first.

    Requests that can be undone or retried have a button, because their cards may have been deleted.
    """
    if not page.total:
        return Message.of(f"There are no requests for {flow_name(flow)} yet.")
    title = f"*{text.count(page.total, 'request')}* for {flow_name(flow)}, newest first"
    rows: list[Row] = [(title, None), *_requests(page.items, reader, Act.UNDO, Act.RETRY)]
    return _message(rows, page.turning("history"))


def _requests(requests: Sequence[Request], reader: Reader, *acts: Act) -> Iterator[Row]:
    for request in requests:
        buttons = act_buttons(request, *acts) if reader.asks else []
        yield phrases.summary(request, reader.show), next(iter(buttons), None)


def open_requests(page: Page[OpenRow], reader: Reader) -> Message:
    """Return the open requests, with buttons."""
    verb = "needs" if page.total == 1 else "need"
    title = f"*{text.count(page.total, 'request')}* {verb} a decision"
    message = Message.of(title if page.total else "Nothing is waiting for approval. :tada:")
    for row in page.items:
        message = message.then(waiting(row, reader.show))
    return message.plus(*page.turning("requests"))


def waiting(row: OpenRow, show: Show) -> Message:
    """Return an open request, with the buttons that the reader can use."""
    request, change = row.request, change_of(row.request, show, phrases.exact)
    is_exact = len(change) <= EXACT_CHARACTERS
    asked = f"wants to {change if is_exact else change_of(request, show)}"
    given = len(request.round.approvals)
    count = f" · {given} of {row.needed} approvals" if row.needed > 1 else ""
    about = f"{count} · this request expires {text.time(request.expires_at)}"
    reason = phrases.quote(request.requested.reason, 150) if show is phrases.in_full else []
    by = f"*{who(request.requester)}*{phrases.through(request)}"
    line = "\n".join([f"{by} {asked}{about}", *reason])
    if not is_exact:
        line += f"\nThis change is too long to show here. See its card in <#{row.channel_id}>."
    # A change that isn't shown in full can't be decided here.
    decides = (Act.APPROVE, Act.DENY) if row.decides and is_exact else ()
    buttons = act_buttons(request, *decides, *((Act.CANCEL,) if row.cancels else ()))
    return Message(line, [*block_kit.sections([line]), *block_kit.row(buttons)])


def own(
    requests: Sequence[Request], page: Page[AccessGroup], people: int, reader: Reader
) -> Message:
    """Return a person's requests, and a page of the people they requested access for.

    `people` is the total number of people they requested access for.
    """
    rows: list[Row] = []
    if not page.wanted.page:
        rows.append((f"*Your requests* ({len(requests):,})" if requests else NO_REQUESTS, None))
        rows += _requests(requests[:REQUESTS_SHOWN], reader, Act.CANCEL)
        left = len(requests) - REQUESTS_SHOWN
        if left > 0:
            rows.append((f"And {left:,} more.", None))
    rows.append((f"{PEOPLE} ({people:,})" if people else NO_ACCESS, None))
    message = _message(rows, [])
    for group in page.items:
        message = message.then(group_message(group, reader))
    return message.plus(*page.turning("mine"))


def group_message(group: AccessGroup, reader: Reader) -> Message:
    """Return the people in a group, with buttons to extend their access."""
    people = brief(group.identities, reader.show)
    line = f"on {flow_name(group.flow)} · {_until(group.ends_at)}"
    if len(group.identities) > 1:
        line = f"• *{phrases.how_many(len(group.identities))}* {line}: {people}"
    else:
        line = f"• {people} {line}"
    buttons = extend_buttons(group.flow, group.identities)
    if not group.ends_at:
        buttons = form_button("Set an end date", group.flow, group.identities)
    return Message.of(line).plus(*block_kit.row(buttons if reader.asks else []))


def endless(total: int, unread: Mapping[Flow, str]) -> str:
    """Return how many people have access with no end date, and which flows aren't counted."""
    missing = f" ({text.count(len(unread), 'flow')} can't be read)" if unread else ""
    return f"{WITHOUT_END}: *{phrases.how_many(total)}*{missing}"


def review(
    page: Page[Endless],
    unread: Mapping[Flow, str],
    granting: Mapping[str, Request],
    reader: Reader,
) -> Message:
    """Return a page of people whose access has no end date.

    `unread` has the reason why a flow's list can't be read. `granting` contains the requests that
    gave the access on the page, keyed by ID.
    """
    lines = [
        f":warning: {flow_name(flow)} is missing here. {text.sentence(reason, 250)}"
        for flow, reason in [*unread.items()][:UNREAD_SHOWN]
    ]
    message = Message.of(endless(page.total, unread), *lines)
    for endless_ in page.items:
        held, about = endless_.access, OUTSIDE
        if held is not None:
            about = f"since {text.time(held.since)} · {_by(granting[held.request_id])}"
        shown = brief([endless_.identity], reader.show)
        line = f"• {shown} on {flow_name(endless_.flow)} · {about}"
        flow, person = endless_.flow, [endless_.identity]
        buttons = [
            *form_button("Set an end date", flow, person),
            *form_button("Remove", flow, person, kind="remove", action_id=ids.TESTUSERS_PERSON),
        ]
        message = message.then(Message.of(line).plus(*block_kit.row(buttons)))
    return message.plus(*page.turning("review"))


def _message(rows: Sequence[Row], below: Sequence[SlackBlock]) -> Message:
    """Return a message with these rows, with their buttons if there's room for all of them."""
    lines = [line for line, _ in rows]
    body = [block_kit.section(line, button) for line, button in rows]
    if phrases.size_of([*body, *below]) > MESSAGE_CHARACTERS:
        body = block_kit.sections([text.cut(line, 400) for line in lines])
    return Message("\n".join(lines), (*body, *below))
