"""Writes refusals of the service to the database once it is back."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.errors import DatabaseUnavailable
from bot.ops.clock import Clock
from bot.organizations.rules import OrganizationKey
from bot.tasks import Tasks

TRY_AGAIN_SECONDS = 1.0

Write = Callable[[], Awaitable[None]]


@dataclass(eq=False)
class _Waiting:
    """Pending writes of one organization, oldest first, and the attempt in progress."""

    writes: deque[Write] = field(default_factory=deque)
    trying: asyncio.Task[None] | None = None


class DeferredWrites:
    """Retries writes that an organization's next grant depends on.

    Args:
        clock: Times the pauses between attempts.
        tasks: Run the retries, so that a stop waits for them.
    """

    def __init__(self, clock: Clock, tasks: Tasks) -> None:
        self._clock = clock
        self._tasks = tasks
        self._waiting: dict[OrganizationKey, _Waiting] = {}

    async def write(self, key: OrganizationKey, write: Write) -> None:
        """Write now, or keep retrying until the database accepts it.

        Raises:
            DatabaseUnavailable: The first attempt failed; retries continue.
        """
        try:
            await write()
        except DatabaseUnavailable:
            self._keep(key, write)
            raise

    async def done(self, key: OrganizationKey) -> None:
        """Write everything pending for the organization; concurrent callers share one attempt.

        Raises:
            DatabaseUnavailable: Some writes are still pending.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        if waiting.trying is None:
            waiting.trying = asyncio.create_task(self._write_all(key, waiting))
            waiting.trying.add_done_callback(lambda tried: _has_tried(waiting, tried))
        # Shielded, because others may be waiting for the same attempt.
        await asyncio.shield(waiting.trying)

    async def _write_all(self, key: OrganizationKey, waiting: _Waiting) -> None:
        while waiting.writes:
            await waiting.writes[0]()
            waiting.writes.popleft()
        del self._waiting[key]

    def _keep(self, key: OrganizationKey, write: Write) -> None:
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = _Waiting()
            self._tasks.start(self._go_on_trying(key), f"deferred {key}")
        waiting.writes.append(write)

    async def _go_on_trying(self, key: OrganizationKey) -> None:
        while key in self._waiting:
            await self._clock.sleep(TRY_AGAIN_SECONDS)
            try:
                await self.done(key)
            except DatabaseUnavailable:
                continue


def _has_tried(waiting: _Waiting, tried: "asyncio.Task[None]") -> None:
    waiting.trying = None
    if not tried.cancelled():
        tried.exception()  # Retrieve the exception even if every caller has stopped waiting.
