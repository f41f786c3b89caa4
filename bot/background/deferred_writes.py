"""What the service refused while the database was away: written as soon as it is back."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.background.tasks import Tasks
from bot.errors import DatabaseUnavailable
from bot.model.organizations.organization import OrganizationKey
from bot.ops.clock import Clock

TRY_AGAIN_SECONDS = 1.0

Write = Callable[[], Awaitable[None]]


@dataclass(eq=False)
class _Waiting:
    """What is left to write of an organization, oldest first, and the try that is under way."""

    writes: deque[Write] = field(default_factory=deque)
    trying: asyncio.Task[None] | None = None


class DeferredWrites:
    """Goes on trying, in this process, to write what an organization's next grant depends on.

    Args:
        clock: For the pauses between two tries.
        tasks: Hold what goes on trying, so that a stop waits for it.
    """

    def __init__(self, clock: Clock, tasks: Tasks) -> None:
        self._clock = clock
        self._tasks = tasks
        self._waiting: dict[OrganizationKey, _Waiting] = {}

    async def write(self, key: OrganizationKey, write: Write) -> None:
        """Write now, or else as soon as the database takes it.

        Raises:
            DatabaseUnavailable: Not now.
        """
        try:
            await write()
        except DatabaseUnavailable:
            self._keep(key, write)
            raise

    async def done(self, key: OrganizationKey) -> None:
        """Return when nothing is left to write of the organization: one try, however many ask.

        Raises:
            DatabaseUnavailable: Something is left still.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        if waiting.trying is None:
            waiting.trying = asyncio.create_task(self._write_all(key, waiting))
            waiting.trying.add_done_callback(lambda tried: _has_tried(waiting, tried))
        # Shielded: who gives up waiting takes it from nobody else.
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
        tried.exception()  # retrieved, even if everybody has given up waiting
