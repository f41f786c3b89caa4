"""Reading a flow's list, its history, and the open requests."""

from datetime import timedelta

from bot.permissions import Permission, Person
from bot.slack.messages.block_kit import page_count
from bot.spelling import folded
from bot.testusers import store
from bot.testusers.flows import Parts
from bot.testusers.messages.pages import (
    HistoryPage,
    ListPage,
    OwnPage,
    PendingPage,
    PendingRow,
    grouped,
)
from bot.testusers.rules.changes import is_flow_sid, mask
from bot.testusers.rules.requests import Request

LIST_PAGE, HISTORY_PAGE, PENDING_PAGE = 16, 5, 5
ENDINGS_SHOWN = 5
SCHEDULED_SHOWN = 5
OWN_PAGE, OWN_MOST = 10, 10_000
DECIDED_FOR = timedelta(days=7)
# docs.slack.dev, block_suggestion: at most 100 options.
SUGGESTIONS = 100


async def listed(
    bot: Parts,
    person: Person,
    typed: str,
    page: int = 0,
    text: str = "",
    *,
    is_typed: bool = True,
) -> ListPage:
    """Return a page of the service's current list for a flow, with the grants.

    `text` filters by the part of each identity that the person may see.
    """
    await bot.people.require(person, Permission.READ)
    flow = bot.flows.named(typed)
    sees, wanted = bot.people.may(person, Permission.SEE_IDENTITIES), folded(text)
    whole = await bot.flows.read(flow, is_typed=is_typed)
    found = [
        identity for identity in whole if wanted in folded(identity if sees else mask(identity))
    ]
    async with bot.database.read_only() as tx:
        granted = await store.grants_of_flow(tx, flow.key)
        scheduled = [] if text or page else await store.scheduled_requests(tx, flow.key)
    pages = page_count(len(found), LIST_PAGE)
    page = min(page, pages - 1)
    known = [identity for identity in found if identity in granted]
    others = [identity for identity in found if identity not in granted]
    shown = (*known, *others)[page * LIST_PAGE : (page + 1) * LIST_PAGE]
    grants_shown = {identity: granted[identity] for identity in shown if identity in granted}
    return ListPage(
        flow,
        shown,
        grants_shown,
        page,
        pages,
        len(found),
        len(others),
        text,
        tuple(scheduled[:SCHEDULED_SHOWN]),
        bot.flows.service().url_of(flow.sid),
    )


async def history(bot: Parts, person: Person, typed: str, page: int = 0) -> HistoryPage:
    """Return a page of a flow's requests, newest first."""
    await bot.people.require(person, Permission.READ)
    flow = bot.flows.named(typed)
    async with bot.database.read_only() as tx:
        found, total = await store.requests_of_flow(
            tx, flow.key, limit=HISTORY_PAGE, offset=page * HISTORY_PAGE
        )
        changes = await store.latest_changes(tx, flow.key, ENDINGS_SHOWN * 4)
    pages = page_count(total, HISTORY_PAGE)
    if page >= pages:
        return await history(bot, person, typed, pages - 1)
    ended = [change for change in changes if change.ended]
    endings = ended[: 0 if page else ENDINGS_SHOWN]
    return HistoryPage(flow, tuple(found), tuple(endings), page, pages, total)


async def pending(bot: Parts, person: Person, page: int = 0) -> PendingPage:
    """Return a page of open requests, with the buttons for the person."""
    await bot.people.require(person, Permission.READ)
    async with bot.database.read_only() as tx:
        total = await store.count_pending(tx)
        pages = page_count(total, PENDING_PAGE)
        page = min(page, pages - 1)
        found = await store.pending_requests(tx, limit=PENDING_PAGE, offset=page * PENDING_PAGE)
        later = [] if page else (await store.scheduled_requests(tx))[:SCHEDULED_SHOWN]
    rows = tuple(_row(bot, person, request) for request in found)
    scheduled = tuple(_row(bot, person, request) for request in later)
    return PendingPage(rows, page, pages, total, scheduled)


async def own(bot: Parts, person: Person, page: int = 0) -> OwnPage:
    """Return the person's requests and the access they requested, the next end first."""
    await bot.people.require(person, Permission.READ)
    user = person.slack_user_id
    async with bot.database.read_only() as tx:
        since = await tx.now() - DECIDED_FOR
        own = await store.requests_of(tx, user, decided_since=since, limit=OWN_MOST)
        granted = await store.grants_of(tx, user, limit=OWN_MOST)
    groups = grouped(granted)
    pages = page_count(len(groups), OWN_PAGE)
    page = min(page, pages - 1)
    shown = groups[page * OWN_PAGE : (page + 1) * OWN_PAGE]
    return OwnPage(tuple(own), tuple(shown), len(granted), page, pages)


def _row(bot: Parts, person: Person, request: Request) -> PendingRow:
    requester = request.requester.slack_user_id
    people, sid = bot.people, request.flow.sid
    return PendingRow(
        request,
        decides=people.may(person, Permission.DECIDE, sid, requester),
        cancels=person.slack_user_id == requester and people.may(person, Permission.REQUEST),
        needed=bot.people.policy.of_flow(sid).approvals_needed,
    )


def suggestions(bot: Parts, typed: str) -> list[tuple[str, str]]:
    """Return (shown, value) for the flows that match the text; a pasted SID is accepted too."""
    wanted = typed.strip().casefold()
    found = [
        (f"{alias} ({sid})", alias)
        for alias, sid in sorted(bot.flows.sids.items())
        if wanted in alias.casefold() or wanted in sid.casefold()
    ]
    if not found and is_flow_sid(typed.strip()):
        found.append((typed.strip(), typed.strip()))
    return found[:SUGGESTIONS]
