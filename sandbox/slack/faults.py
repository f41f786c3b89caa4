"""Faults on demand: what the Web API does to the next N calls of a method."""

import asyncio
from dataclasses import dataclass, field

from sandbox.patience import PATIENCE_SECONDS


@dataclass
class Fault:
    """What happens to `times` calls of a method (None: to all, until cleared).

    `status` with `body` is answered instead of the method's own answer; `error` is Slack's name in
    an answer of `ok: false`. `kind` is one of `answer`, `hang` (no answer ever), `drop` (the
    connection is cut before anything happened), `cut` (it happened, then the connection is cut),
    `hold` (it waits).
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

    `await reached()` returns once a call has arrived (`after=True`: once its effect is there and
    only the answer is missing); `release()` lets it and all later ones go on.
    """

    def __init__(self, *, after: bool) -> None:
        self.after = after
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self) -> None:
        """Wait until a call stands here.

        Raises:
            TimeoutError: none came in time.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._reached.wait()

    def release(self) -> None:
        """Let it go on."""
        self._released.set()

    async def pass_through(self) -> None:
        """What a held call does."""
        self._reached.set()
        await self._released.wait()


class Faults:
    """The faults set now, by method (`"*"`: every method, `"response_url"`: posts there)."""

    def __init__(self) -> None:
        self._by_method: dict[str, list[Fault]] = {}

    def add(self, method: str, fault: Fault) -> None:
        """Set a fault; several of one method happen one after the other."""
        self._by_method.setdefault(method, []).append(fault)

    def ratelimit(self, method: str, *, retry_after: int = 1, times: int | None = 1) -> None:
        """Answer 429 `ratelimited` with `Retry-After` in seconds."""
        headers = {"Retry-After": str(retry_after)}
        self.add(method, Fault(times=times, status=429, error="ratelimited", headers=headers))

    def error(self, method: str, name: str, *, times: int | None = 1) -> None:
        """Answer `{"ok": false, "error": name}`."""
        self.add(method, Fault(times=times, error=name))

    def status(self, method: str, status: int, *, body: str = "", times: int | None = 1) -> None:
        """Answer an HTTP status with any body."""
        self.add(method, Fault(times=times, status=status, body=body))

    def html(self, method: str, *, status: int = 502, times: int | None = 1) -> None:
        """Answer a web page, as a proxy in between does."""
        self.status(method, status, body="<html><body>Bad gateway</body></html>", times=times)

    def hang(self, method: str, *, times: int | None = 1) -> None:
        """Never answer."""
        self.add(method, Fault(kind="hang", times=times))

    def drop(self, method: str, *, times: int | None = 1) -> None:
        """Cut the connection; nothing has happened."""
        self.add(method, Fault(kind="drop", times=times))

    def cut(self, method: str, *, times: int | None = 1) -> None:
        """Do it, then cut the connection before answering: the caller cannot know."""
        self.add(method, Fault(kind="cut", times=times))

    def hold(self, method: str, *, after: bool = False, times: int | None = 1) -> Hold:
        """Make calls wait until released."""
        hold = Hold(after=after)
        self.add(method, Fault(kind="hold", times=times, hold=hold))
        return hold

    def clear(self) -> None:
        """Forget every fault; what is held goes on."""
        for fault in (fault for faults in self._by_method.values() for fault in faults):
            if fault.hold:
                fault.hold.release()
        self._by_method.clear()

    def take(self, method: str) -> Fault | None:
        """The fault that happens to this call, used up by it."""
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
