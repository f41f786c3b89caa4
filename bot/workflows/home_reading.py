"""What Home tabs show, read once for everybody whose tab is made at about the same moment."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

from cachetools import TTLCache

from bot.background.batches import Batches
from bot.background.single_flight import SingleFlight
from bot.dataclass import dataclass
from bot.model.home import DECIDED_FOR, OpenBlock
from bot.model.quotas.incidents import Incident
from bot.model.quotas.use import OrganizationUse
from bot.model.testusers.changes import Flow
from bot.model.testusers.requests import Grant, Request
from bot.ops.clock import Clock
from bot.store import grants, home_views, incidents, requests
from bot.store.engine import Database
from bot.store.home_views import HomeView
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.quotas.ratelimits import RateLimits

# A tab may be three seconds old, and an event is acknowledged after 50 ms at most.
BATCH_SECONDS = 0.02
# Where the machine has no time left, so many tabs are made every half a second.
AT_ONCE, YIELD_SECONDS = 24, 0.5
CLOSEST_SECONDS = 5.0
OWN_SHOWN, ENDING_SHOWN, CLOSEST_SHOWN = 15, 10, 3
# Of those that wait, so many are looked at for those that a person may decide on.
PENDING_READ = 200


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored at one moment, and one person's part of it.

    Attributes:
        now: The moment.
        view: The person's tab, as far as it is known; None where they never opened it.
        pending: Requests that wait for somebody.
        blocks: Organizations that are blocked.
        closest: Organizations nearest to a limit; a few seconds old.
        own: The person's requests.
        timed: The grants that they asked for and that end.
    """

    now: datetime
    view: HomeView | None
    pending: Sequence[Request]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]
    own: Sequence[Request]
    timed: Sequence[tuple[Flow, Grant]]


class HomeReading:
    """Reads what Home tabs show."""

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
        self._batches = Batches(
            self._read, every=BATCH_SECONDS, most=AT_ONCE, yields_for=YIELD_SECONDS
        )

    async def of(self, slack_user_id: str) -> Stored:
        """Return what is stored for a person now or later."""
        return await self._batches.do(slack_user_id)

    async def _read(self, people: Sequence[str]) -> Sequence[Stored]:
        closest = await self._closest.get("", self._find_closest)
        names = await self._directory.known()
        async with self._database.read_only() as tx:
            now = await tx.now()
            views = await home_views.load(tx, people)
            pending = await requests.pending(tx, limit=PENDING_READ)
            blocked = await incidents.all_open(tx)
            own: Mapping[str, Sequence[Request]] = await requests.of_requesters(
                tx, people, decided_since=now - DECIDED_FOR, limit=OWN_SHOWN
            )
            timed = await grants.ending_of_requesters(tx, people, limit=ENDING_SHOWN + 1)
        blocks = [_open_block(one, names.name_of(one.key)) for one in blocked]
        return [
            Stored(
                now, views.get(one), pending, blocks, closest, own.get(one, ()), timed.get(one, ())
            )
            for one in people
        ]

    async def _find_closest(self, _: str) -> Sequence[OrganizationUse]:
        names = await self._directory.known()
        used = (one for one in await self._ratelimits.standings() if one.is_used)
        worst = islice(used, CLOSEST_SHOWN)
        return [OrganizationUse(names.name_of(one.key), one) for one in worst]


def _open_block(incident: Incident, name: str) -> OpenBlock:
    longest = incident.blocks.longest
    until = datetime.fromtimestamp(longest.until, UTC) if longest else None
    return OpenBlock(name, incident.key.data_center, incident.code, until)
