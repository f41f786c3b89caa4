"""Read the content of a Home tab."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from cachetools import TTLCache

from bot.home.rules import DECIDED_FOR, OpenBlock
from bot.ops.clock import Clock
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.blocks import Incident
from bot.quotas.rules.use import OrganizationUse
from bot.quotas.store import incidents
from bot.single_flight import SingleFlight
from bot.store import home_views
from bot.store.engine import Database
from bot.store.home_views import HomeView
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Grant, Request
from bot.testusers.store import grants, requests

CLOSEST_SECONDS = 5.0
OWN_SHOWN, CLOSEST_SHOWN = 15, 3
# One person's grants, the first to end; they are shown by request.
TIMED_READ = 1_000
# Pending requests read to find those that the person may decide on.
PENDING_READ = 200


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything stored that one person's Home tab may show.

    Attributes:
        now: The database's time.
        view: The person's tab; None if they never opened it.
        pending: Requests that wait for a decision.
        blocks: Blocked organizations.
        closest: Organizations nearest to a limit; a few seconds old.
        own: The person's requests.
        timed: The grants with an end that the person requested.
    """

    now: datetime
    view: HomeView | None
    pending: Sequence[Request]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]
    own: Sequence[Request]
    timed: Sequence[tuple[Flow, Grant]]


class HomeReading:
    """Reads the content of Home tabs."""

    def __init__(
        self,
        database: Database,
        directory: OrganizationDirectory,
        ratelimits: RateLimits,
        clock: Clock,
    ) -> None:
        self._database = database
        self._directory = directory
        self._ratelimits = ratelimits
        self._closest: SingleFlight[str, Sequence[OrganizationUse]] = SingleFlight(
            TTLCache(1, CLOSEST_SECONDS, timer=clock.monotonic)
        )

    async def of(self, slack_user_id: str) -> Stored:
        """Return the stored content of a person's Home tab."""
        closest = await self._closest.get("", self._find_closest)
        names = await self._directory.known()
        async with self._database.read_only() as tx:
            now = await tx.now()
            view = await home_views.load(tx, slack_user_id)
            pending = await requests.pending(tx, limit=PENDING_READ)
            blocked = await incidents.all_open(tx)
            own = await requests.of_requester(
                tx, slack_user_id, decided_since=now - DECIDED_FOR, limit=OWN_SHOWN
            )
            timed = await grants.of_requester(tx, slack_user_id, limit=TIMED_READ, only_timed=True)
        blocks = [_open_block(incident, names.name_of(incident.key)) for incident in blocked]
        return Stored(now, view, pending, blocks, closest, own, timed)

    async def _find_closest(self, _: str) -> Sequence[OrganizationUse]:
        names = await self._directory.known()
        used = (standing for standing in await self._ratelimits.standings() if standing.is_used)
        worst = islice(used, CLOSEST_SHOWN)
        return [OrganizationUse(names.name_of(standing.key), standing) for standing in worst]


def _open_block(incident: Incident, name: str) -> OpenBlock:
    longest = incident.blocks.longest
    until = datetime.fromtimestamp(longest.until, UTC) if longest else None
    return OpenBlock(name, incident.key.data_center, incident.code, until)
