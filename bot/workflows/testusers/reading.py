"""Reading: who is on a list, what was done to it, what waits."""

from bot.model.requests import Request
from bot.model.testuser_pages import HistoryPage, ListPage, PendingPage, PendingRow, page_count
from bot.model.testusers import Flow, is_flow_sid
from bot.permissions import Permission, Person
from bot.store import flows, grants, requests
from bot.store.engine import Transaction
from bot.workflows.testusers.setup import Setup

LIST_PAGE, HISTORY_PAGE, PENDING_PAGE = 20, 5, 5
ENDINGS_SHOWN = 5
# docs.slack.dev, block_suggestion: at most 100 options.
SUGGESTIONS = 100


class Reading:
    """Answers `list`, `history` and `requests`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def sees_identities(self, person: Person) -> bool:
        """Return whether the person may see identities in full."""
        return self._setup.people.may(person, Permission.SEE_IDENTITIES)

    @property
    def aliases(self) -> list[str]:
        """The short names of flows, in order."""
        return sorted(self._setup.rules.aliases)

    async def listed(self, person: Person, typed: str, page: int = 0) -> ListPage:
        """Return a page of a flow's list as the service has it now, with the grants.

        Raises:
            Refused, NotFound, NotConfigured, ServiceError: It cannot be shown.
        """
        await self._setup.people.admit(person, Permission.READ)
        flow = self._setup.flow(typed)
        listed = await self._setup.service().read(flow.sid)
        async with self._setup.database.reading() as tx:
            granted = await grants.of_flow(tx, flow.key)
        pages = page_count(len(listed), LIST_PAGE)
        page = min(page, pages - 1)
        shown = tuple(listed[page * LIST_PAGE : (page + 1) * LIST_PAGE])
        known = {one: granted[one] for one in shown if one in granted}
        return ListPage(flow, shown, known, page, pages, len(listed))

    async def history(self, person: Person, typed: str, page: int = 0) -> HistoryPage:
        """Return a page of a flow's requests, newest first.

        Raises:
            Refused, NotFound: It cannot be shown.
        """
        await self._setup.people.admit(person, Permission.READ)
        flow = self._setup.flow(typed)
        async with self._setup.database.reading() as tx:
            found, total = await _requests_of(tx, flow, page)
            pages = page_count(total, HISTORY_PAGE)
            if page >= pages:
                page = pages - 1
                found, total = await _requests_of(tx, flow, page)
            changes = await flows.latest_changes(tx, flow.key, ENDINGS_SHOWN * 4)
        endings = [one for one in changes if one.ended][:ENDINGS_SHOWN] if page == 0 else []
        return HistoryPage(flow, tuple(found), tuple(endings), page, pages, total)

    async def pending(self, person: Person, page: int = 0) -> PendingPage:
        """Return a page of what waits, with the buttons that the person has.

        Raises:
            Refused: The person may not look.
        """
        await self._setup.people.admit(person, Permission.READ)
        async with self._setup.database.reading() as tx:
            total = await requests.count_pending(tx)
            pages = page_count(total, PENDING_PAGE)
            page = min(page, pages - 1)
            found = await requests.pending(tx, limit=PENDING_PAGE, offset=page * PENDING_PAGE)
        rows = tuple(self._row(person, one) for one in found)
        return PendingPage(rows, self._setup.rules.approval.approvals_needed, page, pages, total)

    def _row(self, person: Person, request: Request) -> PendingRow:
        requester = request.requester.slack_user_id
        people, sid = self._setup.people, request.flow.sid
        return PendingRow(
            request,
            decides=people.may(person, Permission.DECIDE, sid, requester),
            cancels=person.slack_user_id == requester and people.may(person, Permission.REQUEST),
        )

    def suggestions(self, typed: str) -> list[tuple[str, str]]:
        """Return (shown, value) of the flows that fit what is typed; a pasted SID is one too."""
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
