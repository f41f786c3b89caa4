"""Work that goes on after Slack has its acknowledgement, kept so that a stop can wait for it."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """Holds running tasks: the event loop itself keeps only weak references."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run the coroutine; it must deal with its own exceptions."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def drain(self, seconds: float) -> None:
        """Wait for what runs, and for what that starts; cancel what is not done by then."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._running and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(set(self._running), timeout=left)
        unfinished = list(self._running)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


def keep_out_of_collections() -> None:
    """Spare the garbage collector what was just made to live long: ten thousand organizations.

    It would look through them again and again, while nobody is answered for 0.1 s and more. They
    have no cycles, so they go when nothing refers to them any more; other garbage that is under
    way at this moment and has some stays.
    """
    gc.freeze()
