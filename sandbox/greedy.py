"""Simulates a greedy script, which calls the inventory service or another API as often as it can.

The script represents any program that shares the inventory's limits with the bot. If the script
calls the service directly, it uses the inventory's token and ignores `Retry-After`. If the script
calls the gateway, it uses the token of the gateway client `script`. The page has buttons to start
and stop the script, and shows the results.
"""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from sandbox.services import weather
from sandbox.services.running import RunningServices
from sandbox.services.state import inventory_token

# Stands for the data center of another API.
API = "api"
CLIENT, TOKEN = "script", "demo-gateway-token"
SECONDS, CALLERS = 30.0, 3
# The gateway may hold a call for this long until it is the call's turn.
WAIT_SECONDS = 60
# A call that has had no response for this long is shown as waiting.
WAITING_SECONDS = 1.0
# The direct script ignores `Retry-After`, as real scripts do.
IMPATIENT_SECONDS = 0.05


@dataclass
class Run:
    """A run of the greedy script, with its results. `through` is `directly` or `gateway`.

    If `data_center` is `api`, `organization_id` is the name of another API.

    `refused` counts the service's 429 responses by error code. `declined` counts the gateway's 429
    responses by the value of the `Gatehouse-Declined` header. `last` is the most recent error.
    `started` maps the number of each unanswered call to the call's start time.
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
    started: dict[int, float] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Return the results for the page.

        `waiting` is the number of calls that have been waiting for at least one second.
        """
        now = time.monotonic()
        waits = [now - started for started in self.started.values()]
        shown = dict(vars(self))
        del shown["started"]
        return {**shown, "waiting": sum(wait >= WAITING_SECONDS for wait in waits)}


class Greedy:
    """Runs the greedy script directly, through the gateway, or both at the same time."""

    def __init__(self, services: RunningServices, gateway_url: str) -> None:
        self._services = services
        self._gateway_url = gateway_url
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.runs: dict[str, Run] = {}

    async def ask(self, text: str) -> str:
        """Ask for a change to test users, as a program does. Return the gateway's answer."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.post(f"{self._gateway_url}/testusers", data=text.encode()) as answer,
            ):
                return f"{answer.status} {await answer.text()}"
        except aiohttp.ClientError as error:
            return type(error).__name__

    async def start(self, through: str, data_center: str, organization_id: str) -> None:
        """Start a new run. If the previous run is still active, stop it first."""
        await self.stop(through)
        run = self.runs[through] = Run(through, data_center, organization_id)
        self._tasks[through] = asyncio.create_task(self._run(run))

    async def stop(self, through: str) -> None:
        """Stop the run, if there is one."""
        if task := self._tasks.get(through):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.runs[through].running = False

    async def close(self) -> None:
        """Stop both runs."""
        for through in self.runs:
            await self.stop(through)

    async def _run(self, run: Run) -> None:
        async with aiohttp.ClientSession() as session:
            callers = [asyncio.create_task(self._call_on(session, run)) for _ in range(CALLERS)]
            try:
                await asyncio.wait(callers, timeout=SECONDS)
            finally:
                # Nobody counts the responses to these calls.
                run.sent -= len(run.started)
                for task in callers:
                    task.cancel()
                await asyncio.gather(*callers, return_exceptions=True)
                run.running = False

    async def _call_on(self, session: aiohttp.ClientSession, run: Run) -> None:
        while True:
            pause = await self._call(session, run)
            await asyncio.sleep(pause)

    async def _call(self, session: aiohttp.ClientSession, run: Run) -> float:
        """Make one call. Return the number of seconds to wait before the next call."""
        is_direct = run.through == "directly"
        query = {}
        if run.data_center == API:
            root, path, token = self._services.weather_url, "forecast", weather.TOKEN
        else:
            root, path = self._services.inventory_url(run.data_center), "organizations"
            token = inventory_token(run.data_center)
            query = {"organization_id": run.organization_id}
        name = run.organization_id if run.data_center == API else run.data_center
        url = f"{root if is_direct else f'{self._gateway_url}/{name}'}/{path}"
        headers = {} if is_direct else {"Prefer": f"wait={WAIT_SECONDS}"}
        if run.data_center == API:
            headers["Authorization"] = f"Bearer {token if is_direct else TOKEN}"
        else:
            query["authtoken"] = token if is_direct else TOKEN
        run.sent += 1
        number = run.sent
        run.started[number] = time.monotonic()
        try:
            async with session.get(url, params=query, headers=headers) as answer:
                return self._note(run, answer, await answer.read())
        except aiohttp.ClientError as error:
            run.failed += 1
            run.last = type(error).__name__
            return 1.0
        finally:
            del run.started[number]

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
            run.refused[str(said.get("code", answer.status))] += 1
        if run.through == "directly":
            return IMPATIENT_SECONDS
        return float(answer.headers.get("Retry-After", "1"))


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
