"""How every organization stands, read in portions and kept a moment for all who ask.

To look at ten thousand organizations takes half a second of processor: so it is done in steps
between which others are answered, and for everybody at once.
"""

import asyncio

from cachetools import TLRUCache

from bot.background.single_flight import SingleFlight
from bot.model.organizations.directory import Directory
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.quota import Terms
from bot.model.quotas.standing import Ranked, Ranking, Standing
from bot.ops.clock import Clock
from bot.ops.portions import with_pauses
from bot.store import quota_use
from bot.store.engine import Database
from bot.workflows.directory import OrganizationDirectory

# So that to look takes a tenth of the time at most, however many ask: a small installation's
# standings are never old, and ten thousand organizations' a few seconds.
KEPT_TIMES, MOST_KEPT_SECONDS = 10.0, 5.0


class Standings:
    """Knows how every organization stands, without any call.

    Args:
        database: The ledger.
        directory: Knows the organizations that are listed.
        terms: The plans in force, and when a call is given up.
        clock: For how long it took, and for how long it is kept.
    """

    def __init__(
        self,
        database: Database,
        directory: OrganizationDirectory,
        terms: Terms,
        clock: Clock,
    ) -> None:
        self._database = database
        self._directory = directory
        self._terms = terms
        self._clock = clock
        self._took_seconds = 0.0
        self._rankings: SingleFlight[int, Ranking] = SingleFlight(
            TLRUCache(1, lambda *_: self._kept_until(), timer=clock.monotonic)
        )

    async def ranking(self) -> Ranking:
        """Every organization, worst first; a few seconds old at most.

        Raises:
            DatabaseUnavailable: Nothing is known then.
        """
        directory = await self._directory.known()

        async def read(_: int) -> Ranking:
            return await self._read(directory)

        # Kept only while as many are listed: what has just been loaded is shown at once.
        return await self._rankings.get(len(directory.keys), read)

    def _kept_until(self) -> float:
        return self._clock.monotonic() + min(KEPT_TIMES * self._took_seconds, MOST_KEPT_SECONDS)

    async def _read(self, directory: Directory) -> Ranking:
        began = self._clock.monotonic()
        ranked: list[Ranked] = []
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
            portions = quota_use.standings(tx, self._terms)
            async for portion in with_pauses(portions, self._clock):
                ranked += [(one.rank, one) for one in portion]
        # In a thread: others are answered meanwhile.
        ranking = await asyncio.to_thread(Ranking.of, ranked, directory.keys, self._idle, now)
        self._took_seconds = self._clock.monotonic() - began
        return ranking

    def _idle(self, key: OrganizationKey) -> Standing:
        return Standing.idle(key, self._terms.plan_of(key))
