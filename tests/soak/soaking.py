"""Runs a soak test, checks the outcome, and returns the results as rows of a table."""

import asyncio
import json
import random
import statistics
from collections import defaultdict

from sandbox.services.calls import Call
from sandbox.services.state import ServicesState
from tests.soak.actors import (
    BLOCKED,
    BUSY,
    CHECKERS,
    Pace,
    Soak,
    blocker,
    checker,
    decider,
    killer,
    more_people,
    requester,
)
from tests.soak.crowds import truth
from tests.support.fleet import running_fleet
from tests.support.steady import seconds_now
from tests.support.story import ALERTS, Story
from tests.support.world import ROLES

HOUR = 3600.0
PROCESSES = 3
LONGEST_EXPIRY_SECONDS = 25.0


async def soak(database_url: str, pace: Pace, seed: int) -> list[tuple[str, object]]:
    """Run the soak test, and compare the results with the model. Return table rows."""
    expire = min(LONGEST_EXPIRY_SECONDS, pace.seconds / 3)
    async with running_fleet(database_url, 0, services=services(), **settings(expire)) as fleet:
        await asyncio.gather(*(fleet.add(pace.launcher) for _ in range(PROCESSES)))
        fleet.answer_seconds = pace.answer_seconds
        more_people(fleet)
        ends_at = seconds_now() + pace.seconds
        one = Soak(fleet, Story(fleet), random.Random(seed), pace, ends_at)
        await work(one)
        found = await check(one)
        found |= await truth(database_url, fleet.services.state, "PostgreSQL")
    return [("seconds of work", f"{pace.seconds:.0f}"), *rows(one), *found.items()]


async def work(one: Soak) -> None:
    """Run all actors until time is up and every request has been decided."""
    deciding = asyncio.create_task(decider(one))
    working = asyncio.gather(
        requester(one),
        *(checker(one, user) for user in CHECKERS),
        blocker(one),
        killer(one),
    )
    try:
        await first_failure(working, deciding)
        await first_failure(asyncio.ensure_future(one.undecided.join()), deciding)
    finally:
        for task in (working, deciding):
            task.cancel()
        await asyncio.gather(working, deciding, return_exceptions=True)


async def first_failure(awaited: "asyncio.Future", besides: "asyncio.Task[None]") -> None:
    """Wait for the first task, but fail immediately if the second task fails."""
    await asyncio.wait({awaited, besides}, return_when=asyncio.FIRST_COMPLETED)
    if besides.done():
        besides.result()
    await awaited


def services() -> ServicesState:
    """Set up the simulated services, and give one busy organization the Enterprise plan."""
    state = ServicesState()
    state.limits.plans[BUSY] = "enterprise"
    return state


def settings(expire_seconds: float) -> dict[str, str]:
    """Return the bot's settings."""
    roles = {**ROLES, "operator": [*ROLES["operator"], *CHECKERS]}
    return {
        "roles": json.dumps(roles),
        "request_hours": str(expire_seconds / HOUR),
        "remind_hours": str(expire_seconds / HOUR / 2),
        "commands_per_minute": "0",
        "inventory_plans": json.dumps({"/".join(BUSY): "enterprise"}),
    }


def rows(one: Soak) -> list[tuple[str, object]]:
    """Return the measurements as table rows."""
    slow = statistics.quantiles(one.answer_seconds, n=100)[98]
    middle = statistics.median(one.answer_seconds)
    return [
        ("processes", PROCESSES),
        *sorted(one.counts.items()),
        ("answers by the bot, median and 99 % within", f"{middle:.2f} s, {slow:.2f} s"),
    ]


TRUE_SECONDS = 90.0
CLEARED_SECONDS = 150.0
MINUTE_SECONDS = 60.0
PER_MINUTE = 100
# This many people type at the same time, so a process can't have more commands.
LOST_AT_ONCE = 5
# A call may arrive at the service's last moment of a block and be answered after it.
EDGE_SECONDS = 2.0


async def check(soak: Soak) -> dict[str, object]:
    """Compare all results with the model. Return the results for the table."""
    await soak.story.comes_true(TRUE_SECONDS)
    await cleared(soak)
    provoked = [call for call in soak.fleet.services.state.refused if not is_blocked(soak, call)]
    assert not provoked, f"the bot provoked {len(provoked)} refusals: {provoked[:3]}"
    most = most_in_a_minute(soak.fleet.services.state.calls)
    assert most <= PER_MINUTE, f"{most} calls in a minute"
    lost, kills = soak.counts["commands lost with a killed process"], soak.counts["kills -9"]
    assert lost <= kills * LOST_AT_ONCE, f"{lost} commands lost with {kills} kills"
    said = await soak.fleet.verify_audit()
    assert not soak.fleet.tracebacks, soak.fleet.tracebacks[0][:3000]
    entries = await soak.fleet.look_at_audit()
    requests = len(soak.story.expected_requests)
    return {
        "lists, cards and messages as the model says": f"{requests} requests",
        "audit": f"intact, {entries} entries ({said.partition(',')[0]})",
        "most calls of one organization in any minute": most,
        "refusals that the bot provoked": 0,
        "incident messages": len(soak.fleet.slack.workspace.messages(ALERTS)),
        "tracebacks in the logs": 0,
    }


async def cleared(soak: Soak) -> None:
    """Check that every incident is over, and that no block caused more than one message."""
    workspace = soak.fleet.slack.workspace
    await soak.fleet.slack.until(
        lambda: all("Cleared" in message.text for message in workspace.messages(ALERTS)),
        timeout=CLEARED_SECONDS,
    )
    for at in BLOCKED:
        blocks = sum(block[0] == at for block in soak.blocks)
        alerts = sum(at[1] in message.all_text for message in workspace.messages(ALERTS))
        assert alerts <= blocks, f"{at}: {blocks} blocks, {alerts} messages"


def is_blocked(soak: Soak, call: Call) -> bool:
    """Return True if the call arrived during a block that another client caused."""
    at = (call.data_center, call.organization_id)
    return any(
        block == at and begin - EDGE_SECONDS <= call.arrived_at <= end + EDGE_SECONDS
        for block, begin, end in soak.blocks
    )


def most_in_a_minute(calls: list[Call]) -> int:
    """Return the highest number of calls that any organization received within 60 seconds."""
    counted: dict[tuple[str | None, str | None], list[float]] = defaultdict(list)
    for call in calls:
        if call.counted_at is not None:
            counted[call.data_center, call.organization_id].append(call.counted_at)
    return max((_most(sorted(times)) for times in counted.values()), default=0)


def _most(times: list[float]) -> int:
    first, most = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= MINUTE_SECONDS:
            first += 1
        most = max(most, last - first + 1)
    return most
