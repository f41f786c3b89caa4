"""Calls made for people: few at a time, and none by a button right after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cachetools import TLRUCache

from bot.ops.clock import Clock
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError

AT_ONCE = 20
FAILED_SECONDS = 5.0
# Using a refused credential repeatedly may lock its account.
REFUSED_SECONDS = 15.0
EVERYTHING = ""

T = TypeVar("T")


class Lane:
    """People's calls to one service. Jobs have their own way to it."""

    def __init__(self, clock: Clock) -> None:
        self._failures: TLRUCache[str, ServiceError] = TLRUCache(
            1_000, lambda _, error, now: now + pause_after(error), timer=clock.monotonic
        )
        self._room = asyncio.Semaphore(AT_ONCE)

    async def call(self, key: str, work: Callable[[], Awaitable[T]], *, is_typed: bool) -> T:
        """Do the work when its turn comes.

        Args:
            key: The subject. After a failure only the same subject is refused; after refused
                credentials, every subject.
            work: Makes the call.
            is_typed: True for a typed command, which always retries; False for a button.
        """
        async with self._room:
            failure = self._failures.get(EVERYTHING) or self._failures.get(key)
            if failure is not None and not is_typed:
                raise failure.with_traceback(None)
            try:
                result = await work()
            except ServiceError as error:
                subject = EVERYTHING if isinstance(error, CredentialsRefused) else key
                self._failures[subject] = error
                raise
        self._failures.pop(key, None)
        self._failures.pop(EVERYTHING, None)
        return result


def pause_after(error: ServiceError) -> float:
    """Return for how many seconds no button repeats a failed call."""
    is_refused = isinstance(error, CredentialsRefused | PermissionMissing)
    return REFUSED_SECONDS if is_refused else FAILED_SECONDS
