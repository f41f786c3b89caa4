"""A greedy script: one of the team's own programs that calls the inventory as often as it can.

It runs against the service itself, with the inventory's own token and no manners, or through the
gateway as the client `script`. The page starts it, stops it and shows what each way got:

    GET  /page/greedy        what there is to see, see below
    POST /page/greedy        {"through": "directly" | "gateway", "data_center": "eu",
                              "organization_id": "20061234", "seconds": 30, "callers": 3}
                             starts that way anew; all but `through` may be left out
    POST /page/greedy/stop   {"through": "directly" | "gateway"}

Each answers with the same JSON: the gateway's address, and for each way that was started
`{"running": bool, "data_center", "organization_id", "seconds", "sent", "passed", "refused": {"44":
n}, "declined": {"minute": n}, "failed", "last"}`. `sent` are calls that the script made, `passed`
those answered 200, `refused` the service's own 429s by code, `declined` the gateway's by kind, and
`last` is the message of the newest answer that was not 200. A wrong request is a 400 with
`{"error": "…"}`.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.running import RunningServices
from sandbox.services.state import inventory_token

CLIENT, TOKEN = "script", "demo-gateway-token"
WAYS = ("directly", "gateway")
MOST_SECONDS, MOST_CALLERS = 600.0, 20
# What waits for its turn in the gateway, waits so long.
WAIT_SECONDS = 60
# Who has no manners comes again at once; a real one would, too.
IMPATIENT_SECONDS = 0.05
TELL_SECONDS = 0.5


class WrongOrderError(Exception):
    """The script was asked to do what it cannot."""


@dataclass
class Run:
    """One way's last run, and what came of it."""

    through: str
    data_center: str
    organization_id: str
    seconds: float
    callers: int
    sent: int = 0
    passed: int = 0
    failed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    last: str = ""
    task: "asyncio.Task[None] | None" = None

    def report(self) -> dict[str, Any]:
        """As the page gets it."""
        return {
            "running": self.task is not None and not self.task.done(),
            "data_center": self.data_center,
            "organization_id": self.organization_id,
            "seconds": self.seconds,
            "sent": self.sent,
            "passed": self.passed,
            "failed": self.failed,
            "refused": dict(self.refused),
            "declined": dict(self.declined),
            "last": self.last,
        }


class Greedy:
    """Runs the script, at most once each way.

    Args:
        services: Where it calls directly.
        gateway_url: Where it calls through the gateway.
        changed: Called now and then while there is something new to see.
    """

    def __init__(
        self, services: RunningServices, gateway_url: str, changed: Callable[[], None]
    ) -> None:
        self._services = services
        self._gateway_url = gateway_url
        self._changed = changed
        self._runs: dict[str, Run] = {}

    def report(self) -> dict[str, Any]:
        """What each way got."""
        runs = {through: run.report() for through, run in self._runs.items()}
        return {"gateway_url": self._gateway_url, "client": CLIENT, "runs": runs}

    async def start(self, order: object) -> dict[str, Any]:
        """Start one way anew.

        Raises:
            WrongOrderError: It says what is wrong.
        """
        run = self._read(order)
        await self.stop(run.through)
        self._runs[run.through] = run
        run.task = asyncio.create_task(self._run(run))
        return self.report()

    async def stop(self, through: str) -> dict[str, Any]:
        """Stop one way, if it runs."""
        run = self._runs.get(through)
        if run is not None and run.task is not None:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)
        return self.report()

    async def close(self) -> None:
        """Stop both ways."""
        for through in list(self._runs):
            await self.stop(through)

    def _read(self, order: object) -> Run:
        if not isinstance(order, dict):
            raise WrongOrderError("an object is wanted")
        through, data_center = order.get("through"), order.get("data_center", "eu")
        if through not in WAYS:
            raise WrongOrderError(f"through is one of {', '.join(WAYS)}")
        if data_center not in DATA_CENTERS:
            raise WrongOrderError(f"data_center is one of {', '.join(DATA_CENTERS)}")
        listed = self._services.state.data_centers[data_center].organizations
        organization_id = str(order.get("organization_id") or listed[0].organization_id)
        try:
            seconds, callers = float(order.get("seconds", 30)), int(order.get("callers", 3))
        except (TypeError, ValueError):
            raise WrongOrderError("seconds and callers are numbers") from None
        if not (0 < seconds <= MOST_SECONDS and 0 < callers <= MOST_CALLERS):
            raise WrongOrderError(f"up to {MOST_SECONDS:g} seconds and {MOST_CALLERS} callers")
        return Run(through, data_center, organization_id, seconds, callers)

    async def _run(self, run: Run) -> None:
        async with aiohttp.ClientSession() as session:
            callers = [asyncio.create_task(self._call_on(session, run)) for _ in range(run.callers)]
            telling = asyncio.create_task(self._tell())
            try:
                await asyncio.wait(callers, timeout=run.seconds)
            finally:
                for task in (*callers, telling):
                    task.cancel()
                await asyncio.gather(*callers, telling, return_exceptions=True)
                asyncio.get_running_loop().call_soon(self._changed)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            self._changed()

    async def _call_on(self, session: aiohttp.ClientSession, run: Run) -> None:
        pause = 0.0
        while pause >= 0:
            pause = await self._call(session, run)
            await asyncio.sleep(pause)

    async def _call(self, session: aiohttp.ClientSession, run: Run) -> float:
        """Make one call; how long to pause before the next one."""
        is_direct = run.through == "directly"
        root = self._services.inventory_url(run.data_center)
        url = root if is_direct else f"{self._gateway_url}/{run.data_center}"
        token = inventory_token(run.data_center) if is_direct else TOKEN
        query = {"organization_id": run.organization_id, "authtoken": token}
        manners = {} if is_direct else {"Prefer": f"wait={WAIT_SECONDS}"}
        run.sent += 1
        try:
            async with session.get(f"{url}/organizations", params=query, headers=manners) as answer:
                return self._note(run, answer, await answer.read())
        except aiohttp.ClientError as error:
            run.failed += 1
            run.last = type(error).__name__
            return 1.0

    def _note(self, run: Run, answer: aiohttp.ClientResponse, body: bytes) -> float:
        if answer.status == 200:
            run.passed += 1
            return 0.0
        said = _json_of(body)
        run.last = str(said.get("message", answer.reason))
        declined = answer.headers.get("Gatehouse-Declined")
        if answer.status != 429:
            run.failed += 1
            return 1.0
        if declined is not None:
            run.declined[declined] += 1
        else:
            run.refused[str(said.get("code"))] += 1
        if run.through == "directly":
            return IMPATIENT_SECONDS
        return float(answer.headers.get("Retry-After", "1"))


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
