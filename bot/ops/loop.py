"""The program's event loop, which prevents slow DNS lookups from blocking other work.

By default, asyncio resolves names in a small thread pool that it also uses for other work, and
waits for the threads at shutdown. If a name server doesn't respond, a lookup takes 10 to 40
seconds. One lookup would delay shutdown that long, and a few would block all work in threads.
"""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
Looked = list[tuple[Any, ...]]


class NamingLoop(asyncio.SelectorEventLoop):
    """An event loop that resolves each host name in a separate daemon thread."""

    async def getaddrinfo(self, *wanted: Any, **hints: Any) -> Looked:  # noqa: ANN401 - as the base
        """Resolve a host name like `socket.getaddrinfo`, but in a separate thread."""
        found: Future[Looked] = Future()

        def look_up() -> None:
            if not found.set_running_or_notify_cancel():
                return
            try:
                found.set_result(socket.getaddrinfo(*wanted, **hints))
            except UnicodeError:
                # A part of the name is empty or longer than 63 characters.
                found.set_exception(socket.gaierror(socket.EAI_NONAME, "not a host name"))
            except Exception as error:  # noqa: BLE001 - raised in the caller
                found.set_exception(error)

        threading.Thread(target=look_up, name="dns", daemon=True).start()
        return await asyncio.wrap_future(found)


def run(program: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine like `asyncio.run`, but in a `NamingLoop`."""
    with asyncio.Runner(loop_factory=NamingLoop) as runner:
        return runner.run(program)
