"""How every organization stands, read in portions and kept a moment for all who ask.

To look at ten thousand organizations takes half a second of processor: so it is done in steps
between which others are answered, and for everybody at once.
"""

import asyncio
from heapq import merge

from cachetools import LRUCache

from bot.background.single_flight import SingleFlight
from bot.model.organizations.directory import Directory
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.quota import Terms
from bot.model.quotas.standing import Ranked, Ranking, RankingBuilder, Standing
from bot.ops.clock import Clock
from bot.ops.portions import in_portions, with_pauses
from bot.store import quota_use
from bot.store.engine import Database
from bot.workflows.directory import OrganizationDirectory

# So that to look takes a tenth of the time at most, however many ask: a small installation's
# standings are never old, and ten thousand organizations' a few seconds.
KEPT_TIMES, MOST_KEPT_SECONDS = 10.0, 5.0
# While the next look is under way people see the last one, where it is not older by much.
OVERDUE_TIMES = 2.0
# Organizations, in about a millisecond.
SORTED_AT_ONCE = 200


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
        self._took_seconds = self._read_at = 0.0
        # By how many are listed: what has just been loaded is shown at once.
        self._rankings: SingleFlight[int, Ranking] = SingleFlight(LRUCache(1))
        self._turn = asyncio.Lock()

    async def ranking(self) -> Ranking:
        """Every organization, worst first; a few seconds old at most.

        Raises:
            DatabaseUnavailable: Nothing is known then.
        """
        directory = await self._directory.known()
        last = self._rankings.cached(len(directory.keys))
        if last is not None and self._overdue_seconds() < 0:
            return last

        async def read(_: int) -> Ranking:
            return await self._read(directory)

        reading = self._rankings.start(len(directory.keys), read)
        if last is not None and self._overdue_seconds() < OVERDUE_TIMES * self._took_seconds:
            return last
        ranking = await asyncio.shield(reading)
        # Many may have waited. One at a time: others are answered meanwhile.
        async with self._turn:
            await asyncio.sleep(0)
        return ranking

    def _overdue_seconds(self) -> float:
        kept_seconds = min(KEPT_TIMES * self._took_seconds, MOST_KEPT_SECONDS)
        return self._clock.monotonic() - self._read_at - kept_seconds

    async def _read(self, directory: Directory) -> Ranking:
        began = self._clock.monotonic()
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
            portions = quota_use.standings(tx, self._terms)
            ranked: list[list[Ranked]] = [
                sorted((one.rank, one) for one in portion)
                async for portion in with_pauses(portions, self._clock)
            ]
        # Not in a thread: it would take turns with this one, and others' answers with both.
        builder = RankingBuilder(directory.keys)
        async for called in with_pauses(in_portions(merge(*ranked), SORTED_AT_ONCE), self._clock):
            builder.add_called(called)
        async for keys in with_pauses(in_portions(directory.keys, SORTED_AT_ONCE), self._clock):
            builder.add_listed(keys)
        self._read_at = self._clock.monotonic()
        self._took_seconds = self._read_at - began
        return builder.ranking(self._idle, now)

    def _idle(self, key: OrganizationKey) -> Standing:
        return Standing.idle(key, self._terms.plan_of(key))
