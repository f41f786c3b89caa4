"""Limits calls made for people: few at a time, and none by a button right after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cachetools import TLRUCache

from bot.ops.clock import Clock
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError

AT_ONCE = 20
FAILED_SECONDS = 5.0
# Using a refused credential repeatedly may lock the account.
REFUSED_SECONDS = 15.0
EVERYTHING = ""

T = TypeVar("T")


class Lane:
    """People's calls to a service. Jobs call the service without a lane."""

    def __init__(self, clock: Clock) -> None:
        self._failures: TLRUCache[str, ServiceError] = TLRUCache(
            1_000, lambda _, error, now: now + pause_after(error), timer=clock.monotonic
        )
        self._room = asyncio.Semaphore(AT_ONCE)

    async def call(self, key: str, work: Callable[[], Awaitable[T]], *, is_typed: bool) -> T:
        """Wait for a free slot, then do the work.

        Args:
            key: The subject. After a failure, only calls for the same subject are refused; after
                refused credentials, calls for all subjects.
            work: The function that makes the call.
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
    """Return the number of seconds during which buttons don't repeat a failed call."""
    is_refused = isinstance(error, CredentialsRefused | PermissionMissing)
    return REFUSED_SECONDS if is_refused else FAILED_SECONDS
