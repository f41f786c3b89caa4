"""Calls made for people: few at a time, and none by a button right after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar
from weakref import WeakValueDictionary

from cachetools import TLRUCache

from bot.ops.clock import Clock
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError

AT_ONCE = 8
# Buttons get a part of these, so hanging calls don't block typed commands or other look-ups.
PRESSED_AT_ONCE = 4
OF_ONE_KEY = 2
FAILED_SECONDS = 5.0
# Using a refused credential repeatedly may lock its account.
REFUSED_SECONDS = 15.0
EVERYTHING = ""

T = TypeVar("T")


class RecentFailures:
    """Failures of the last moments, by key."""

    def __init__(self, clock: Clock) -> None:
        self._errors: TLRUCache[str, ServiceError] = TLRUCache(
            1_000, lambda _, error, now: now + _seconds(error), timer=clock.monotonic
        )

    def check(self, key: str) -> None:
        """Raise the key's recent failure, if any."""
        error = self._errors.get(EVERYTHING) or self._errors.get(key)
        if error is not None:
            raise error.with_traceback(None)

    def note(self, key: str, error: ServiceError) -> None:
        """Remember a failure briefly."""
        self._errors[key] = error

    def forget(self, key: str) -> None:
        """Forget a failure after a success."""
        self._errors.pop(key, None)


class Lane:
    """People's calls to one service. Jobs have their own way to it."""

    def __init__(self, clock: Clock) -> None:
        self._failures = RecentFailures(clock)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._room_for_buttons = asyncio.Semaphore(PRESSED_AT_ONCE)
        self._rooms: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def call(self, key: str, work: Callable[[], Awaitable[T]], *, is_typed: bool) -> T:
        """Do the work when its turn comes.

        Args:
            key: The subject. After a failure only the same subject is refused; after refused
                credentials, every subject.
            work: Makes the call.
            is_typed: True for a typed command, which always retries; False for a button.
        """
        own_room = self._rooms.setdefault(key, asyncio.Semaphore(OF_ONE_KEY))
        allowed = nullcontext() if is_typed else self._room_for_buttons
        async with own_room, allowed, self._room:
            if not is_typed:
                self._failures.check(key)
            try:
                result = await work()
            except ServiceError as error:
                self._failures.note(
                    EVERYTHING if isinstance(error, CredentialsRefused) else key, error
                )
                raise
        self._failures.forget(key)
        self._failures.forget(EVERYTHING)
        return result


def _seconds(error: ServiceError) -> float:
    is_refused = isinstance(error, CredentialsRefused | PermissionMissing)
    return REFUSED_SECONDS if is_refused else FAILED_SECONDS
