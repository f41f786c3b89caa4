"""Draws a person's Home tab from the stored state."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from cachetools import TTLCache

from bot.errors import UnknownPerson
from bot.home import messages as ui
from bot.home.rules import HomeContent, OpenBlock
from bot.ops.clock import Clock
from bot.organizations.directory import OrganizationDirectory
from bot.permissions import Permission, Person
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.use import OrganizationUse
from bot.quotas.store import incidents
from bot.single_flight import SingleFlight
from bot.slack.people import People
from bot.store.engine import Database
from bot.testusers.rules.pages import PendingRow, grouped
from bot.testusers.rules.requests import Request
from bot.testusers.store import grants, requests

CLOSEST_SECONDS = 5.0
WAITING_SHOWN, OWN_SHOWN, CLOSEST_SHOWN = 10, 15, 3
# A person's grants that end first; they are shown by request.
TIMED_READ = 1_000
# Pending requests read to find those that the person may decide on.
PENDING_READ = 200
DECIDED_FOR = timedelta(days=7)
ENDING_WITHIN = timedelta(hours=24)
DOUBTFUL = timedelta(seconds=30)
# Quota usage changes with every call; the usage shown is at most this old.
LIMITS_FRESH, LIMITS_FRESH_LATER = timedelta(minutes=1), timedelta(minutes=10)
WATCHED_FOR = timedelta(hours=1)

Drawn = tuple[Mapping[str, Any], datetime | None]
"""A view, and the time of its next change if nothing else happens."""


class HomeDrawing:
    """Draws Home tabs.

    Args:
        database: Holds requests, grants and incidents.
        clock: Tells the age of cached entries.
        people: Identities and permissions.
        directory: The organizations' names.
        ratelimits: The organizations' quota usage.
        approvals_needed: The setting for flows without a policy.
        approvals_channel: The channel that cards are posted in.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        people: People,
        directory: OrganizationDirectory,
        ratelimits: RateLimits,
        approvals_needed: int,
        approvals_channel: str,
    ) -> None:
        self._database = database
        self.people = people
        self._directory = directory
        self._ratelimits = ratelimits
        self._approvals_needed = approvals_needed
        self._approvals_channel = approvals_channel
        self._closest: SingleFlight[str, Sequence[OrganizationUse]] = SingleFlight(
            TTLCache(1, CLOSEST_SECONDS, timer=clock.monotonic)
        )

    async def draw(self, slack_user_id: str, opened_at: datetime, now: datetime) -> Drawn:
        """Return the Home tab of a person who last opened it at this time."""
        people = self.people
        try:
            person = await people.find(slack_user_id, (people.team_id,))
        except UnknownPerson as error:
            return ui.sentence(error.sentence), now + DOUBTFUL
        if person.stranger is not None:
            return ui.sentence(person.stranger), None
        if people.may(person, Permission.READ):
            return await self._content(person, opened_at)
        if person.doubt is not None:
            return ui.sentence(person.doubt), now + DOUBTFUL
        return ui.sentence(f"{ui.NO_ACCESS} {await people.access_contact()}"), None

    async def _content(self, person: Person, opened_at: datetime) -> Drawn:
        user, people = person.slack_user_id, self.people
        closest = await self._closest.get("", self._find_closest)
        names = await self._directory.known()
        async with self._database.read_only() as tx:
            now = await tx.now()
            pending = await requests.pending(tx, limit=PENDING_READ)
            blocked = await incidents.all_open(tx)
            own = await requests.of_requester(
                tx, user, decided_since=now - DECIDED_FOR, limit=OWN_SHOWN
            )
            timed = await grants.of_requester(tx, user, limit=TIMED_READ, only_timed=True)
        waiting = [
            PendingRow(request, True, False, self._needed(request))
            for request in pending
            if self._waits(person, request)
        ]
        blocks = [
            OpenBlock(
                names.name_of(incident.key),
                incident.key.data_center,
                incident.code,
                datetime.fromtimestamp(block.until, UTC)
                if (block := incident.blocks.longest)
                else None,
            )
            for incident in blocked
        ]
        ending_by = [(granted, granted[1].ends_at) for granted in timed]
        content = HomeContent(
            waiting=waiting[:WAITING_SHOWN],
            waiting_total=len(waiting),
            own=own,
            ending=grouped(
                granted for granted, at in ending_by if at is not None and at <= now + ENDING_WITHIN
            ),
            blocks=blocks,
            closest=[use for use in closest if not use.standing.blocks],
            asks_changes=people.may(person, Permission.REQUEST),
            sees_identities=people.may(person, Permission.SEE_IDENTITIES),
        )
        is_watched = opened_at > now - WATCHED_FOR
        changes_at = [
            now + (LIMITS_FRESH if is_watched else LIMITS_FRESH_LATER),
            *(at - ENDING_WITHIN for _, at in ending_by if at is not None),
            *(request.decided_at + DECIDED_FOR for request in own if request.decided_at),
        ]
        drawn = ui.home(content, self._approvals_channel)
        return drawn, min(at for at in changes_at if at > now)

    async def _find_closest(self, _: str) -> Sequence[OrganizationUse]:
        names = await self._directory.known()
        used = (standing for standing in await self._ratelimits.standings() if standing.is_used)
        worst = islice(used, CLOSEST_SHOWN)
        return [OrganizationUse(names.name_of(standing.key), standing) for standing in worst]

    def _needed(self, request: Request) -> int:
        rules = self.people.policy.rules_of(request.flow.sid, self._approvals_needed)
        return rules.approvals_needed

    def _waits(self, person: Person, request: Request) -> bool:
        approved = {approval.who.slack_user_id for approval in request.progress.approvals}
        has_enough = request.has_enough_approvals(self._needed(request))
        return (has_enough or person.slack_user_id not in approved) and self.people.may(
            person, Permission.DECIDE, request.flow.sid, request.requester.slack_user_id
        )
