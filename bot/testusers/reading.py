"""A flow's list, and the pages of `/testusers list`, `history`, `requests`, `mine` and `review`.

Each page shows only what the person is allowed to see. Listeners check who may read it.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bot.approvals.rules import Act, State
from bot.errors import DatabaseUnavailable, NotConfigured
from bot.flows.client import read_current
from bot.flows.rules import Flow, is_flow_sid, mask, stored_spellings
from bot.permissions import Permission, Person
from bot.services.errors import ServiceError
from bot.slack.messages import block_kit
from bot.slack.messages.block_kit import Message, Page, SlackBlock, Wanted, last_page
from bot.spelling import folded, visible
from bot.testusers import store
from bot.testusers.messages import pages
from bot.testusers.messages.pages import Entry, OpenRow, Reader, grouped
from bot.testusers.parts import Parts, policy_of
from bot.testusers.rules.people import Access, CurrentList
from bot.testusers.rules.requests import Request
from bot.testusers.work import put_apply_job

LIST_PAGE, HISTORY_PAGE, PENDING_PAGE = 16, 5, 5
# This many rows fit into a message, whatever they contain.
REVIEW_PAGE = 8
# `/gatehouse status` must not wait for a broken service.
COUNT_SECONDS = 2.0
DECIDED_FOR = timedelta(days=7)
LATER = datetime.max.replace(tzinfo=UTC)
# docs.slack.dev, block_suggestion: at most 100 options.
SUGGESTIONS = 100
# What `ReadList.known_id` is if nobody can know.
IN_DOUBT = -1


@dataclass(frozen=True)
class ReadList:
    """A flow's list, and what was stored about it at the time `at`, just before it was read.

    `access` maps spellings to people's access. `known_id` is the ID of the flow's latest stored
    list at that time, or 0 if there was none. It's `IN_DOUBT` if a POST was in doubt, because the
    list may or may not include its change. `arriving` are the people whom that POST adds.
    """

    identities: tuple[str, ...]
    access: Mapping[str, Access]
    at: datetime
    known_id: int
    arriving: Collection[str] = ()

    @property
    def current(self) -> CurrentList:
        """The list with the ends of access, for comparing it with what is wanted."""
        return CurrentList.of(self.identities, self.access)


async def read_list(bot: Parts, flow: Flow) -> ReadList:
    """Read a flow's list for a command.

    The bot's own changes are read first, so that they can't look like someone else's changes. If
    someone with access is missing from the list, the flow's apply job checks that again.

    Raises:
        ServiceError: The list can't be read, or is older than the bot's latest changes.
    """
    async with bot.database.read_only() as tx:
        at, access, recent, post = await store.access_and_lists(tx, flow.key)
    in_doubt = post.change.identities if post else ()
    listed = await read_current(bot.flows.service(), flow, recent, in_doubt)
    if missing := access.keys() - {*listed}:
        async with bot.database.transaction() as tx:
            await put_apply_job(tx, flow)
        spellings = stored_spellings(missing, {*listed} - access.keys())
        access = {spellings.get(one, one): given for one, given in access.items()}
    if post is None:
        return ReadList(listed, access, at, recent[-1].id if recent else 0)
    arriving = post.change.spelled(post.spellings_on(listed)).additions
    return ReadList(listed, access, at, IN_DOUBT, arriving)


def reader_of(bot: Parts, person: Person) -> Reader:
    """Return what a person who reads a page may see and do."""
    may = bot.people.may
    return Reader(may(person, Permission.SEE_IDENTITIES), may(person, Permission.REQUEST))


async def listed(bot: Parts, person: Person, wanted: Wanted) -> Message:
    """Return a page of a flow's test users that shows who approved them and when access ends.

    The search text matches only the part of each identity that the person is allowed to see.
    """
    flow = bot.flows.named(wanted.flow)
    asks = bot.people.may(person, Permission.REQUEST, flow.sid)
    reads = replace(reader_of(bot, person), asks=asks)
    searched, matching = folded(wanted.text), list[Entry]()
    for entry in await _entries(bot, flow):
        if searched in folded(entry.identity if reads.sees_identities else mask(entry.identity)):
            matching.append(entry)
    matching.sort(key=lambda entry: entry.access is None)
    page = Page.cut(matching, LIST_PAGE, wanted)
    return pages.listing(flow, page, await _granting(bot, page.items), reads)


async def _entries(bot: Parts, flow: Flow) -> list[Entry]:
    read, entries = await read_list(bot, flow), list[Entry]()
    for identity in read.identities:
        access = read.access.get(identity)
        entries.append(Entry(flow, identity, access, identity in read.arriving))
    return entries


async def _granting(bot: Parts, entries: Iterable[Entry]) -> dict[str, Request]:
    """Return the requests that gave people access, keyed by ID."""
    ids = {entry.access.request_id for entry in entries if entry.access}
    async with bot.database.read_only() as tx:
        requests = await store.requests_with(tx, ids)
    return {request.id: request for request in requests}


async def history(bot: Parts, person: Person, wanted: Wanted) -> Message:
    """Return a page of a flow's requests, newest first."""
    reads, flow = reader_of(bot, person), bot.flows.named(wanted.flow)
    async with bot.database.read_only() as tx:
        requests, total = await store.requests_of_flow(
            tx, flow.key, limit=HISTORY_PAGE, offset=wanted.page * HISTORY_PAGE
        )
    last = last_page(total, HISTORY_PAGE)
    if wanted.page > last:
        return await history(bot, person, replace(wanted, page=last))
    needed = {Act.UNDO: Permission.REQUEST, Act.RETRY: Permission.DECIDE}
    acts = [act for act in needed if bot.people.may(person, needed[act], flow.sid)]
    requests = named_now(bot, requests)
    return pages.history(flow, Page(requests, total, last, wanted), reads, *acts)


async def open_requests(bot: Parts, person: Person, wanted: Wanted) -> Message:
    """Return a page of the open requests, with the buttons that the person can use."""
    reads = reader_of(bot, person)
    async with bot.database.read_only() as tx:
        pending = named_now(bot, await store.requests_in(tx, State.PENDING))
    rows = [open_row(bot, person, request) for request in pending]
    return pages.open_requests(Page.cut(rows, PENDING_PAGE, wanted), reads)


async def own(bot: Parts, person: Person, wanted: Wanted) -> Message:
    """Return the person's requests, and a page of the people they requested access for."""
    reads, user = reader_of(bot, person), person.slack_user_id
    async with bot.database.read_only() as tx:
        since = await tx.now() - DECIDED_FOR
        requests = named_now(bot, await store.requests_of(tx, user, since))
        granted = await store.access_by(tx, user)
    groups = grouped((bot.flows.now(flow), access) for flow, access in granted)
    return pages.own(requests, groups, wanted, reads)


async def review(bot: Parts, person: Person, wanted: Wanted) -> Message:
    """Return a page of the people whose access to one flow or any flow has no end date."""
    endless, unread = await _endless(bot, wanted.flow)
    page = Page.cut(endless, REVIEW_PAGE, wanted)
    granting = await _granting(bot, page.items)
    return pages.review(page, unread, granting, reader_of(bot, person))


async def count_endless(bot: Parts) -> list[str]:
    """Return a line with the number of people whose access has no end date, unless all fails."""
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            endless, unread = await _endless(bot)
    except TimeoutError:
        return [pages.NOT_COUNTED]
    except (DatabaseUnavailable, NotConfigured):
        return []
    return [pages.endless(len(endless), unread)]


async def _endless(bot: Parts, typed: str = "") -> tuple[list[Entry], dict[Flow, str]]:
    """Return the people whose access has no end date, and why some flows' lists can't be read.

    Those who have had access the longest come first. Those who were added outside Gatehouse come
    last, because nobody knows since when. All flows are those with an alias or with access.
    """
    bot.flows.service()
    if typed:
        flows = [bot.flows.named(typed)]
    else:
        async with bot.database.read_only() as tx:
            sids = [*await store.flows_with_access(tx), *bot.flows.sids.values()]
        flows = [*{sid.upper(): bot.flows.now(Flow(sid)) for sid in sids}.values()]
    reading = (_entries(bot, flow) for flow in flows)
    lists = await asyncio.gather(*reading, return_exceptions=True)
    endless, unread = list[Entry](), dict[Flow, str]()
    for flow, entries in zip(flows, lists, strict=True):
        if isinstance(entries, ServiceError):
            unread[flow] = entries.sentence
            continue
        if isinstance(entries, BaseException):
            raise entries
        for entry in entries:
            ends = entry.access.ends_at is not None if entry.access else entry.is_arriving
            if not ends:
                endless.append(entry)
    endless.sort(key=lambda entry: entry.access.since if entry.access else LATER)
    return endless, unread


def named_now(bot: Parts, requests: Iterable[Request]) -> list[Request]:
    """Return the requests with the aliases that their flows have in the current settings."""
    return [replace(request, flow=bot.flows.now(request.flow)) for request in requests]


def open_row(bot: Parts, person: Person, request: Request) -> OpenRow:
    """Return an open request with the decisions that the person can make on it."""
    requester, sid, may = request.requester.slack_user_id, request.flow.sid, bot.people.may
    return OpenRow(
        request,
        decides=may(person, Permission.DECIDE, sid, requester),
        cancels=person.slack_user_id == requester and may(person, Permission.REQUEST),
        channel_id=channel_of(bot, request.flow),
        needed=policy_of(bot, request.flow).approvals_needed,
    )


def channel_of(bot: Parts, flow: Flow) -> str:
    """Return the ID of the channel for the cards of a flow's requests."""
    return policy_of(bot, flow).channel or bot.settings.approvals_channel


def suggestions(bot: Parts, person: Person, typed: str) -> list[SlackBlock]:
    """Return options for the matching flows that the person can request changes to.

    If no flow matches, the only option is a typed SID.
    """
    typed = visible(typed.strip())
    flows = [(f"{alias} ({sid})", alias, sid) for alias, sid in sorted(bot.flows.sids.items())]
    matching = [flow for flow in flows if folded(typed) in folded(flow[0])]
    if not matching and is_flow_sid(typed):
        matching = [(typed, typed, typed)]
    options = list[SlackBlock]()
    for label, value, sid in matching:
        if bot.people.may(person, Permission.REQUEST, sid):
            options.append(block_kit.option(label, value))
    return options[:SUGGESTIONS]
