"""Faults on demand for the next N calls of a Web API method."""

import asyncio
from dataclasses import dataclass, field

from sandbox.patience import PATIENCE_SECONDS


@dataclass
class Fault:
    """A fault for the next `times` calls of a method (None: of all calls until `clear`).

    `status` and `body` replace the method's own answer; `error` is Slack's error name in an answer
    with `ok: false`. `kind` is `answer`, `hang` (no answer ever), `drop` (the connection is cut
    before the call has an effect), `cut` (the connection is cut after the effect) or `hold` (the
    call waits).
    """

    kind: str = "answer"
    times: int | None = 1
    status: int = 200
    error: str | None = None
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hold: "Hold | None" = None


class Hold:
    """Calls that wait, so that a test can look around before Slack goes on.

    `await reached()` returns when a call has arrived (with `after=True`: when only its answer is
    missing). `release()` lets this call and all later calls continue.
    """

    def __init__(self, *, after: bool) -> None:
        self.after = after
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self) -> None:
        """Wait until a call is held.

        Raises:
            TimeoutError: No call came in time.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._reached.wait()

    def release(self) -> None:
        """Let the held calls and all later calls continue."""
        self._released.set()

    async def pass_through(self) -> None:
        """Hold a call until `release`."""
        self._reached.set()
        await self._released.wait()


class Faults:
    """The current faults by method (`"*"`: all methods; `"response_url"`: posts to it)."""

    def __init__(self) -> None:
        self._by_method: dict[str, list[Fault]] = {}

    def add(self, method: str, fault: Fault) -> None:
        """Add a fault. If a method has several, they take effect one after another."""
        self._by_method.setdefault(method, []).append(fault)

    def ratelimit(self, method: str, *, retry_after: int = 1, times: int | None = 1) -> None:
        """Respond with 429 `ratelimited` and `Retry-After` in seconds."""
        headers = {"Retry-After": str(retry_after)}
        self.add(method, Fault(times=times, status=429, error="ratelimited", headers=headers))

    def error(self, method: str, name: str, *, times: int | None = 1) -> None:
        """Respond with `{"ok": false, "error": name}`."""
        self.add(method, Fault(times=times, error=name))

    def status(self, method: str, status: int, *, body: str = "", times: int | None = 1) -> None:
        """Respond with an HTTP status and any body."""
        self.add(method, Fault(times=times, status=status, body=body))

    def html(self, method: str, *, status: int = 502, times: int | None = 1) -> None:
        """Respond with a web page, as a proxy between the bot and Slack does."""
        self.status(method, status, body="<html><body>Bad gateway</body></html>", times=times)

    def hang(self, method: str, *, times: int | None = 1) -> None:
        """Never respond."""
        self.add(method, Fault(kind="hang", times=times))

    def drop(self, method: str, *, times: int | None = 1) -> None:
        """Cut the connection before the call has an effect."""
        self.add(method, Fault(kind="drop", times=times))

    def cut(self, method: str, *, times: int | None = 1) -> None:
        """Cut the connection after the effect, so the caller can't know the outcome."""
        self.add(method, Fault(kind="cut", times=times))

    def hold(self, method: str, *, after: bool = False, times: int | None = 1) -> Hold:
        """Make calls wait until released."""
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
        """Return the fault for this call and count it as used."""
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
