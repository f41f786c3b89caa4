"""Makes the next calls to a Web API method fail or wait."""

import asyncio
from dataclasses import dataclass, field

from sandbox.patience import PATIENCE_SECONDS


@dataclass
class Fault:
    """A fault that affects calls to a method.

    `times` is the number of calls that the fault affects, or None if it affects all calls.
    `kind` determines what happens to a call:

    - `answer`: The response has the fault's `status`, and its `body` or `error`.
    - `hang`: The call never gets a response.
    - `drop`: The connection is cut before the call takes effect.
    - `cut`: The connection is cut after the call takes effect.
    - `hold`: The call waits until it is released.
    """

    kind: str = "answer"
    times: int | None = 1
    status: int = 200
    error: str | None = None
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hold: "Hold | None" = None


class Hold:
    """Holds calls so that a test can check the state before the calls continue.

    `await reached()` returns when a call is held. A call is held when it arrives or, if `after` is
    true, after it takes effect but before the response is sent. `release()` lets this call and all
    later calls continue.
    """

    def __init__(self, *, after: bool) -> None:
        self.after = after
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self) -> None:
        """Wait until a call is held.

        Raises:
            TimeoutError: No call arrived in time.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._reached.wait()

    def release(self) -> None:
        """Let the held calls and all later calls continue."""
        self._released.set()

    async def pass_through(self) -> None:
        """Make an API call wait for `release()`."""
        self._reached.set()
        await self._released.wait()


class Faults:
    """The faults that are set for each method.

    The name `"*"` stands for all methods, and `"response_url"` stands for POST requests to a
    response_url.
    """

    def __init__(self) -> None:
        self._by_method: dict[str, list[Fault]] = {}

    def add(self, method: str, fault: Fault) -> None:
        """Add a fault. If a method has several faults, they take effect one after another."""
        self._by_method.setdefault(method, []).append(fault)

    def ratelimit(self, method: str, *, retry_after: int = 1, times: int | None = 1) -> None:
        """Respond with status 429, the error `ratelimited`, and a `Retry-After` header."""
        headers = {"Retry-After": str(retry_after)}
        self.add(method, Fault(times=times, status=429, error="ratelimited", headers=headers))

    def error(self, method: str, name: str, *, times: int | None = 1) -> None:
        """Respond with `{"ok": false, "error": name}`."""
        self.add(method, Fault(times=times, error=name))

    def status(self, method: str, status: int, *, body: str = "", times: int | None = 1) -> None:
        """Respond with this HTTP status and this body."""
        self.add(method, Fault(times=times, status=status, body=body))

    def html(self, method: str, *, status: int = 502, times: int | None = 1) -> None:
        """Respond with an HTML page, as a proxy between the bot and Slack might."""
        self.status(method, status, body="<html><body>Bad gateway</body></html>", times=times)

    def hang(self, method: str, *, times: int | None = 1) -> None:
        """Never respond."""
        self.add(method, Fault(kind="hang", times=times))

    def drop(self, method: str, *, times: int | None = 1) -> None:
        """Cut the connection before the call takes effect."""
        self.add(method, Fault(kind="drop", times=times))

    def cut(self, method: str, *, times: int | None = 1) -> None:
        """Cut the connection after the call takes effect, so the caller can't know the outcome."""
        self.add(method, Fault(kind="cut", times=times))

    def hold(self, method: str, *, after: bool = False, times: int | None = 1) -> Hold:
        """Make calls wait until they are released."""
        hold = Hold(after=after)
        self.add(method, Fault(kind="hold", times=times, hold=hold))
        return hold

    def clear(self) -> None:
        """Remove all faults, and let held calls continue."""
        for fault in (fault for faults in self._by_method.values() for fault in faults):
            if fault.hold:
                fault.hold.release()
        self._by_method.clear()

    def take(self, method: str) -> Fault | None:
        """Return the fault that applies to this call, and count the call against the fault."""
        for name in (method, "*"):
            waiting = self._by_method.get(name, [])
            while waiting:
                fault = waiting[0]
                if fault.times is None:
                    return fault
                if fault.times > 0:
                    fault.times -= 1
                    return fault
                waiting.pop(0)
        return None
