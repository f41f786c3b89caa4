"""A greedy script: one of the team's own programs that calls the inventory as often as it can.

It runs against the service itself, with the inventory's own token and no manners, or through the
gateway as the client `script`. The page starts it, stops it and shows what each way got.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from sandbox.services.running import RunningServices
from sandbox.services.state import inventory_token

CLIENT, TOKEN = "script", "demo-gateway-token"
SECONDS, CALLERS = 30.0, 3
# What waits for its turn in the gateway, waits so long.
WAIT_SECONDS = 60
# Who has no manners comes again at once; a real one would, too.
IMPATIENT_SECONDS = 0.05


@dataclass
class Run:
    """One way's last run, `directly` or through the `gateway`, and what came of it.

    `refused` counts the service's own 429s by code, `declined` the gateway's by kind, and `last` is
    the message of the newest answer that was not 200.
    """

    through: str
    data_center: str
    organization_id: str
    running: bool = True
    sent: int = 0
    passed: int = 0
    failed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    last: str = ""


class Greedy:
    """Runs the script, at most once each way, on `services` or through the gateway."""

    def __init__(self, services: RunningServices, gateway_url: str) -> None:
        self._services = services
        self._gateway_url = gateway_url
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.runs: dict[str, Run] = {}

    async def start(self, through: str, data_center: str, organization_id: str) -> None:
        """Start one way, and stop its last run."""
        await self.stop(through)
        run = self.runs[through] = Run(through, data_center, organization_id)
        self._tasks[through] = asyncio.create_task(self._run(run))

    async def stop(self, through: str) -> None:
        """Stop one way, if it runs."""
        if task := self._tasks.get(through):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.runs[through].running = False

    async def close(self) -> None:
        """Stop both ways."""
        for through in self.runs:
            await self.stop(through)

    async def _run(self, run: Run) -> None:
        async with aiohttp.ClientSession() as session:
            callers = [asyncio.create_task(self._call_on(session, run)) for _ in range(CALLERS)]
            try:
                await asyncio.wait(callers, timeout=SECONDS)
            finally:
                for task in callers:
                    task.cancel()
                await asyncio.gather(*callers, return_exceptions=True)
                run.running = False

    async def _call_on(self, session: aiohttp.ClientSession, run: Run) -> None:
        while True:
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
