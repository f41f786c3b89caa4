"""Background tasks that the program waits for at shutdown, and a cache for slow lookups."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import structlog
from cachetools import TTLCache

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")

log = structlog.get_logger(__name__)


class Tasks:
    """Holds references to background tasks so that Python doesn't discard them while they run."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run the coroutine in the background. An exception that it raises is logged."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("task.broken", task=task.get_name(), exc_info=error)

    async def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for all tasks, including new tasks. Then cancel the rest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:
                    await asyncio.wait(self._running)
        await cancel(self._running)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    unfinished = list(tasks)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)


class Batches(Generic[T, V]):
    """Does work for all items together that arrive while earlier items are being worked on.

    `work` returns a result for each item. If it fails, each item's caller gets the exception.
    """

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[Sequence[V]]]) -> None:
        self._work = work
        self._turn = asyncio.Lock()
        self._items: list[T] = []
        self._next: asyncio.Task[Sequence[V]] | None = None

    async def add(self, item: T) -> V:
        """Return the item's result. The work continues even if the caller is canceled."""
        place = len(self._items)
        self._items.append(item)
        batch = self._next
        if batch is None:
            batch = self._next = asyncio.create_task(self._do())
        results = await asyncio.shield(batch)
        return results[place]

    async def _do(self) -> Sequence[V]:
        async with self._turn:
            items, self._items, self._next = self._items, [], None
            return await self._work(items)


class Flights(Generic[K, V]):
    """Runs one lookup at a time per key. A lookup continues even if its first caller is canceled.

    If a lookup fails, all waiting callers get the exception.
    """

    def __init__(self) -> None:
        self._flying: dict[K, asyncio.Task[V]] = {}

    def start(self, key: K, load: Callable[[], Coroutine[Any, Any, V]]) -> asyncio.Task[V]:
        """Return the key's lookup in progress, or start a new lookup."""
        if key not in self._flying:

            def landed(task: asyncio.Task[V]) -> None:
                del self._flying[key]
                if not task.cancelled():
                    task.exception()  # avoids asyncio's warning about an unread error

            self._flying[key] = asyncio.create_task(load())
            self._flying[key].add_done_callback(landed)
        return self._flying[key]


class SingleFlight(Generic[V]):
    """A cache for slow lookups that runs one lookup at a time for the same arguments of `load`.

    It keeps up to `size` values, each for so many seconds by `timer`. If a lookup fails, nothing is
    cached.
    """

    def __init__(
        self,
        load: Callable[..., Awaitable[V]],
        seconds: float,
        timer: Callable[[], float],
        size: int = 1,
    ) -> None:
        self._load = load
        self._cache: TTLCache[tuple[Hashable, ...], V] = TTLCache(size, seconds, timer=timer)
        self._flights = Flights[tuple[Hashable, ...], V]()

    async def get(self, *arguments: Hashable, fresh: bool = False) -> V:
        """Return the cached value, or load it if it isn't cached or `fresh` is True."""
        if not fresh:
            # Read only once: between `in` and `[]`, an entry could expire.
            value = self._cache.get(arguments)
            if value is not None:
                return value
        load = partial(self._load_and_cache, *arguments)
        return await asyncio.shield(self._flights.start(arguments, load))

    async def _load_and_cache(self, *arguments: Hashable) -> V:
        value = self._cache[arguments] = await self._load(*arguments)
        return value
