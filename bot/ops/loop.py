"""The program's event loop, in which slow DNS lookups don't block other work.

asyncio resolves names in a small thread pool shared by all threaded work, and waits for its threads
at shutdown. With an unresponsive name server, a lookup takes 10 to 40 seconds: a single such host
delayed shutdown by that long, and a few of them blocked all other work.
"""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")
Looked = list[tuple[Any, ...]]


class NamingLoop(asyncio.SelectorEventLoop):
    """Resolves each name in its own thread, shared by concurrent callers.

    The threads are daemons: they end with the program.
    """

    def __init__(self) -> None:
        super().__init__()
        self._looking_up: dict[tuple[object, ...], asyncio.Future[Any]] = {}

    async def getaddrinfo(
        self,
        host: Any,  # noqa: ANN401 - as asyncio has it
        port: Any,  # noqa: ANN401
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002
        proto: int = 0,
        flags: int = 0,
    ) -> Looked:
        """Like `socket.getaddrinfo`; cancelling a caller doesn't cancel the lookup for others."""
        wanted = (host, port, family, type, proto, flags)
        answer = self._looking_up.get(wanted)
        if answer is None:
            answer = self._looking_up[wanted] = self.create_future()
            answer.add_done_callback(lambda _: self._forget(wanted))
            threading.Thread(target=self._look_up, args=wanted, name="dns", daemon=True).start()
        return await asyncio.shield(answer)

    def _look_up(self, *wanted: Any) -> None:  # noqa: ANN401
        found: Any = None
        try:
            found = socket.getaddrinfo(*wanted)
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            found = error
        # The loop is closed, so no caller is waiting.
        with suppress(RuntimeError):
            self.call_soon_threadsafe(self._answer, wanted, found)

    def _answer(self, wanted: tuple[object, ...], found: Looked | Exception) -> None:
        answer = self._looking_up.get(wanted)
        if answer is None or answer.done():
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def _forget(self, wanted: tuple[object, ...]) -> None:
        answer = self._looking_up.pop(wanted, None)
        if answer is not None and not answer.cancelled():
            answer.exception()  # retrieved, even if everybody has given up waiting


def run(program: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, in a `NamingLoop`."""
    with asyncio.Runner(loop_factory=NamingLoop) as runner:
        return runner.run(program)
