"""Reading: a flow's list, its history, and the open requests."""

from datetime import timedelta

from bot.paging import page_count
from bot.permissions import Permission, Person
from bot.spelling import folded
from bot.store.engine import Transaction
from bot.testusers.rules.changes import Flow, is_flow_sid, mask
from bot.testusers.rules.pages import (
    HistoryPage,
    ListPage,
    OwnPage,
    PendingPage,
    PendingRow,
    grouped,
)
from bot.testusers.rules.requests import Request
from bot.testusers.setup import Setup
from bot.testusers.store import flows, grants, requests

LIST_PAGE, HISTORY_PAGE, PENDING_PAGE = 16, 5, 5
ENDINGS_SHOWN = 5
SCHEDULED_SHOWN = 5
OWN_PAGE, OWN_MOST = 10, 10_000
DECIDED_FOR = timedelta(days=7)
# docs.slack.dev, block_suggestion: at most 100 options.
SUGGESTIONS = 100


class Reading:
    """Answers `list`, `history` and `requests`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def sees_identities(self, person: Person) -> bool:
        """Return True if the person may see identities in full."""
        return self._setup.people.may(person, Permission.SEE_IDENTITIES)

    @property
    def aliases(self) -> list[str]:
        """Return the short names of flows, in order."""
        return sorted(self._setup.rules.aliases)

    @property
    def flow_names(self) -> dict[str, str]:
        """Return the alias of each flow by its SID in capitals."""
        return {sid.upper(): alias for alias, sid in self._setup.rules.aliases.items()}

    async def listed(
        self, person: Person, typed: str, page: int = 0, text: str = "", *, is_typed: bool = True
    ) -> ListPage:
        """Return a page of a flow's list as the service has it now, with the grants.

        A `text` filters by the part of each identity that the person may see.

        Raises:
            Refused: The person may not look.
            NotFound, NotConfigured, ServiceError: The flow or its list can't be read.
        """
        await self._setup.people.require(person, Permission.READ)
        flow = self._setup.flow(typed)
        seen = (lambda identity: identity) if self.sees_identities(person) else mask
        wanted, whole = folded(text), await self._setup.read(flow.sid, is_typed=is_typed)
        listed = [identity for identity in whole if wanted in folded(seen(identity))]
        async with self._setup.database.read_only() as tx:
            granted = await grants.of_flow(tx, flow.key)
            scheduled = [] if text or page else await requests.scheduled(tx, flow.key)
        pages = page_count(len(listed), LIST_PAGE)
        page = min(page, pages - 1)
        known = [identity for identity in listed if identity in granted]
        others = [identity for identity in listed if identity not in granted]
        shown = (*known, *others)[page * LIST_PAGE : (page + 1) * LIST_PAGE]
        grants_shown = {identity: granted[identity] for identity in shown if identity in granted}
        return ListPage(
            flow,
            shown,
            grants_shown,
            page,
            pages,
            len(listed),
            len(others),
            text,
            tuple(scheduled[:SCHEDULED_SHOWN]),
        )

    async def history(self, person: Person, typed: str, page: int = 0) -> HistoryPage:
        """Return a page of a flow's requests, newest first.

        Raises:
            Refused: The person may not look.
            NotFound: The flow does not exist.
        """
        await self._setup.people.require(person, Permission.READ)
        flow = self._setup.flow(typed)
        async with self._setup.database.read_only() as tx:
            found, total = await _requests_of(tx, flow, page)
            pages = page_count(total, HISTORY_PAGE)
            if page >= pages:
                page = pages - 1
                found, total = await _requests_of(tx, flow, page)
            changes = await flows.latest_changes(tx, flow.key, ENDINGS_SHOWN * 4)
        endings = (
            [change for change in changes if change.ended][:ENDINGS_SHOWN] if page == 0 else []
        )
        return HistoryPage(flow, tuple(found), tuple(endings), page, pages, total)

    async def pending(self, person: Person, page: int = 0) -> PendingPage:
        """Return a page of open requests, with the buttons that the person has.

        Raises:
            Refused: The person may not look.
        """
        await self._setup.people.require(person, Permission.READ)
        async with self._setup.database.read_only() as tx:
            total = await requests.count_pending(tx)
            pages = page_count(total, PENDING_PAGE)
            page = min(page, pages - 1)
            found = await requests.pending(tx, limit=PENDING_PAGE, offset=page * PENDING_PAGE)
            later = [] if page else (await requests.scheduled(tx))[:SCHEDULED_SHOWN]
        rows = tuple(self._row(person, request) for request in found)
        scheduled = tuple(self._row(person, request) for request in later)
        return PendingPage(rows, page, pages, total, scheduled)

    async def own(self, person: Person, page: int = 0) -> OwnPage:
        """Return the person's requests and the access they requested, the next end first.

        Raises:
            Refused: The person may not look.
        """
        await self._setup.people.require(person, Permission.READ)
        user = person.slack_user_id
        async with self._setup.database.read_only() as tx:
            since = await tx.now() - DECIDED_FOR
            own = await requests.of_requester(tx, user, decided_since=since, limit=OWN_MOST)
            granted = await grants.of_requester(tx, user, limit=OWN_MOST)
        groups = grouped(granted)
        pages = page_count(len(groups), OWN_PAGE)
        page = min(page, pages - 1)
        shown = groups[page * OWN_PAGE : (page + 1) * OWN_PAGE]
        return OwnPage(tuple(own), tuple(shown), len(granted), page, pages)

    def _row(self, person: Person, request: Request) -> PendingRow:
        requester = request.requester.slack_user_id
        people, sid = self._setup.people, request.flow.sid
        return PendingRow(
            request,
            decides=people.may(person, Permission.DECIDE, sid, requester),
            cancels=person.slack_user_id == requester and people.may(person, Permission.REQUEST),
            needed=self._setup.flow_rules(sid).approvals_needed,
        )

    def suggestions(self, typed: str) -> list[tuple[str, str]]:
        """Return (shown, value) of the flows that match the text; a pasted SID counts as one."""
        wanted = typed.strip().casefold()
        aliases = self._setup.rules.aliases
        found = [
            (f"{alias} ({sid})", alias)
            for alias, sid in sorted(aliases.items())
            if wanted in alias.casefold() or wanted in sid.casefold()
        ]
        if not found and is_flow_sid(typed.strip()):
            found.append((typed.strip(), typed.strip()))
        return found[:SUGGESTIONS]


async def _requests_of(tx: Transaction, flow: Flow, page: int) -> tuple[list[Request], int]:
    offset = page * HISTORY_PAGE
    return await requests.of_flow(tx, flow.key, limit=HISTORY_PAGE, offset=offset)
