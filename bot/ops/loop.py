"""The event loop of the program: looking up a host's name holds up nothing else.

asyncio looks names up in the same few threads that all other work in threads shares, and waits for
them at its end. A name server that does not answer keeps a look-up for 10 to 40 seconds: with one
such host a stop took that long, and with a few of them nothing else was done.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

# A thread that computes gives the interpreter away after so long. The loop asks for it after each
# call of the system, several times for each acknowledgement: with Python's 5 ms a computation of
# 20 ms kept it from a command for just as long.
SWITCH_SECONDS = 0.0005

Result = TypeVar("Result")
Looked = list[tuple[Any, ...]]


class NamingLoop(asyncio.SelectorEventLoop):
    """Looks each name up in a thread of its own, once for all who ask meanwhile.

    The threads end with the program, whatever they wait for.
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
        """As `socket.getaddrinfo`; who gives up waiting takes the answer from nobody else."""
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
        # Closed meanwhile: nobody waits any more.
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
    """As `asyncio.run`, in a `NamingLoop`, with threads that let the loop go first."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=NamingLoop) as runner:
        return runner.run(program)
