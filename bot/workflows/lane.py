"""Calls that people cause: few at once, and none by a button of what has just failed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar
from weakref import WeakValueDictionary

from cachetools import TLRUCache

from bot.ops.clock import Clock
from bot.service_errors import CredentialsRefused, PermissionMissing, ServiceError

AT_ONCE = 8
# Of these, so that what hangs is in nobody's way who types, or asks for something else.
PRESSED_AT_ONCE = 4
OF_ONE_KEY = 2
FAILED_SECONDS = 5.0
# A credential that is refused again and again may lock its account.
REFUSED_SECONDS = 15.0
EVERYTHING = ""

T = TypeVar("T")


class RecentFailures:
    """What failed a moment ago, by key."""

    def __init__(self, clock: Clock) -> None:
        self._errors: TLRUCache[str, ServiceError] = TLRUCache(
            1_000, lambda _, error, now: now + _seconds(error), timer=clock.monotonic
        )

    def check(self, key: str) -> None:
        """Raise what a call of that key raised a moment ago, if it did."""
        error = self._errors.get(EVERYTHING) or self._errors.get(key)
        if error is not None:
            raise error.with_traceback(None)

    def note(self, key: str, error: ServiceError) -> None:
        """Remember a failure for a moment."""
        self._errors[key] = error

    def forget(self, key: str) -> None:
        """It works again."""
        self._errors.pop(key, None)


class Lane:
    """The way of people to one service. What jobs do there has a way of its own."""

    def __init__(self, clock: Clock) -> None:
        self._failures = RecentFailures(clock)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._room_for_buttons = asyncio.Semaphore(PRESSED_AT_ONCE)
        self._rooms: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def call(self, key: str, work: Callable[[], Awaitable[T]], *, is_typed: bool) -> T:
        """Do the work when it has its turn.

        Args:
            key: What it asks for: only that is not asked for again after a failure, or nothing
                at all where the credential was refused.
            work: Makes the call.
            is_typed: Who types a command is answered anew; who presses a button is not.
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
