"""A cache for slow look-ups that runs one look-up at a time per key."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Gets values by key.

    A look-up continues even if its first caller is cancelled. A failure is raised in all waiting
    callers and isn't cached.

    Args:
        cache: Any cache from cachetools; only used on the event loop.
    """

    def __init__(self, cache: MutableMapping[K, V]) -> None:
        self._cache = cache
        self._flying: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, load: Callable[[K], Awaitable[V]], *, fresh: bool = False) -> V:
        """Return the value, from the cache unless `fresh`; raise any error that `load` raises."""
        if not fresh:
            # One access instead of "in" and "[]", because an entry may expire in between.
            value = self._cache.get(key)
            if value is not None:
                return value
        return await asyncio.shield(self.start(key, load))

    def start(self, key: K, load: Callable[[K], Awaitable[V]]) -> asyncio.Task[V]:
        """Return the look-up in progress, or begin one."""
        task = self._flying.get(key)
        if task is None:
            task = asyncio.create_task(self._fly(key, load))
            self._flying[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return task

    def cached(self, key: K) -> V | None:
        """Return the cached value or None, without starting a look-up."""
        return self._cache.get(key)

    async def _fly(self, key: K, load: Callable[[K], Awaitable[V]]) -> V:
        value = await load(key)
        self._cache[key] = value
        return value

    def _landed(self, key: K, task: asyncio.Task[V]) -> None:
        if self._flying.get(key) is task:
            del self._flying[key]
        if not task.cancelled():
            task.exception()  # read, to avoid asyncio's warning about an exception never retrieved
