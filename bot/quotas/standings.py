"""Every organization's standing, read in portions and cached briefly for all callers.

Reading ten thousand organizations takes half a second of processor time, so it is done in steps
that let other work run, and once for all callers.
"""

import asyncio
from heapq import merge

from cachetools import LRUCache

from bot.ops.clock import Clock
from bot.ops.portions import in_portions, with_pauses
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import Directory, OrganizationKey
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.standing import Ranked, Ranking, RankingBuilder, Standing
from bot.quotas.store import quota_use
from bot.single_flight import SingleFlight
from bot.store.engine import Database

# Spend at most a tenth of the time on reading, however many ask: small installations get fresh
# standings, ten thousand organizations get standings a few seconds old.
KEPT_TIMES, MOST_KEPT_SECONDS = 10.0, 5.0
# During the next read, people see the previous result unless it is much older.
OVERDUE_TIMES = 2.0
# Organizations per portion, about a millisecond.
SORTED_AT_ONCE = 200


class Standings:
    """Caches every organization's standing, without any call.

    Args:
        database: The ledger.
        directory: Has the listed organizations.
        terms: The plans, and the timeout of a call.
        clock: Times reading and caching.
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
        # Keyed by the number of listed organizations, so that new listings show at once.
        self._rankings: SingleFlight[int, Ranking] = SingleFlight(LRUCache(1))
        self._turn = asyncio.Lock()

    async def ranking(self) -> Ranking:
        """Return every organization, worst first, at most a few seconds old.

        Raises:
            DatabaseUnavailable: The ledger can't be read.
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
        # Many callers may be waiting. Answer them in turn and let other work run in between.
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
                sorted((standing.rank, standing) for standing in portion)
                async for portion in with_pauses(portions, self._clock)
            ]
        # Not in a thread, which would compete with this one and slow every other answer.
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
