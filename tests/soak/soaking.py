"""One soak from its start to its table."""

import asyncio
import json
import random
import statistics

from sandbox.services.state import ServicesState
from tests.soak.actors import (
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
from tests.soak.checks import check
from tests.soak.crowds import truth
from tests.support.fleet import running_fleet
from tests.support.loop_time import seconds_now
from tests.support.story import Story
from tests.support.world import ROLES

HOUR = 3600.0
PROCESSES = 3
LONGEST_EXPIRY_SECONDS = 25.0


async def soak(database_url: str, pace: Pace, seed: int) -> list[tuple[str, object]]:
    """Work for a time, let everything end, and hold it to the model.

    Args:
        database_url: Of a new database on PostgreSQL.
        pace: How long and how rough.
        seed: Of the dice: what is done is the same again, when is not.

    Returns:
        Rows of the table.

    Raises:
        AssertionError: Something is not as it must be.
    """
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
    """Let everybody work until the time is over and what was begun is decided."""
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
    """Wait for the first, and fail at once when the second does."""
    await asyncio.wait({awaited, besides}, return_when=asyncio.FIRST_COMPLETED)
    if besides.done():
        besides.result()
    await awaited


def services() -> ServicesState:
    """The stand-ins, with one organization on a plan that allows to be busy."""
    state = ServicesState()
    state.limits.plans[BUSY] = "enterprise"
    return state


def settings(expire_seconds: float) -> dict[str, str]:
    """The bot's settings."""
    roles = {**ROLES, "operator": [*ROLES["operator"], *CHECKERS]}
    return {
        "roles": json.dumps(roles),
        "request_hours": str(expire_seconds / HOUR),
        "remind_hours": str(expire_seconds / HOUR / 2),
        "commands_per_minute": "0",
        "inventory_plans": json.dumps({BUSY[1]: "enterprise"}),
    }


def rows(one: Soak) -> list[tuple[str, object]]:
    """What was done, in numbers."""
    slow = statistics.quantiles(one.answer_seconds, n=100)[98]
    middle = statistics.median(one.answer_seconds)
    return [
        ("processes", PROCESSES),
        *sorted(one.counts.items()),
        ("answers by the bot, median and 99 % within", f"{middle:.2f} s, {slow:.2f} s"),
    ]
