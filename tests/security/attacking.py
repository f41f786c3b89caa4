"""An attack on one process of the real bot, and what must hold: nothing got, others not held up."""

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable

from sqlalchemy import select

from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.store.tables import requests
from tests.security.attackers import WELCOME, Attack, unsigned, viewer
from tests.support.fleet import running_fleet
from tests.support.loop_time import seconds_now

ATTACKERS: dict[str, Callable[[Attack], Awaitable[None]]] = {
    "unsigned": unsigned,
    "viewer": viewer,
}
HONEST = "+15551234"
ACK_SECONDS, SLACK_SECONDS = 0.1, 3.0
LOOK_SECONDS = 0.01


async def attack(
    name: str, database_url: str, seconds: float, seed: int, *, is_quiet: bool = False
) -> list[tuple[str, str]]:
    """Run one attacker; return what was found.

    On a machine that is quiet and does nothing else, 99 of 100 acknowledgements of others have to
    be in time; else half of them before Slack gives up.

    Raises:
        AssertionError: They got something, or held others up.
    """
    settings = {"inventory_watch": "off", "remind_hours": "0.5"}
    async with running_fleet(database_url, 1, **settings) as fleet:
        fleet.slack.bot_url = fleet.processes[0].address
        flow = fleet.services.state.flows[WELCOME]
        before = list(flow.identities)
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {HONEST}")
        calm = await _acknowledgements(fleet, seconds_now() + min(5.0, seconds / 3))
        until = seconds_now() + seconds
        at_work = Attack(fleet, until, random.Random(seed))
        at_work.request_ids = await _request_ids(database_url)
        late: list[float] = []
        working = asyncio.create_task(ATTACKERS[name](at_work))
        measuring = asyncio.create_task(_measure_lateness(late))
        acks = await _acknowledgements(fleet, until)
        measuring.cancel()
        await working
        spreads = f"{_spread(calm)}; meanwhile {_spread(acks)}; late by {_spread(late)}"
        assert _p99(acks) < ACK_SECONDS if is_quiet else statistics.median(acks) < SLACK_SECONDS, (
            spreads
        )
        assert at_work.got == []
        assert list(flow.identities) == before, flow.identities
        assert fleet.processes[0].tracebacks == []
        await _honest_change_goes_on(fleet, flow)
    return [
        ("attacker", name),
        ("acts", f"{sum(at_work.done.values()):,} in {seconds:.0f} s"),
        ("got", "nothing"),
        ("others' acknowledgements, before", _spread(calm)),
        ("others' acknowledgements, meanwhile", _spread(acks)),
        ("of which this program itself was late by", _spread(late)),
    ]


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[98]


def _spread(seconds: list[float]) -> str:
    """Median, 99 % and worst of acknowledgements, in milliseconds."""
    shown = (statistics.median(seconds), _p99(seconds), max(seconds))
    return f"{len(seconds)}: " + ", ".join(f"{item * 1e3:.0f} ms" for item in shown)


async def _request_ids(database_url: str) -> list[str]:
    database = Database(database_url, SystemClock())
    try:
        async with database.read_only() as tx:
            return [str(item) for item in await tx.connection.scalars(select(requests.c.id))]
    finally:
        await database.close()


async def _acknowledgements(fleet, until: float) -> list[float]:  # type: ignore[no-untyped-def]
    """How long each command of somebody else took to be acknowledged."""
    acks = []
    while seconds_now() < until or len(acks) < 3:
        delivery = await fleet.slack.command("U0APPROVER", "C0GENERAL", "/gatehouse", "whoami")
        assert delivery.status == 200, delivery
        acks.append(delivery.seconds)
        await asyncio.sleep(0.1)
    return acks


async def _measure_lateness(late: list[float]) -> None:
    """Note how late this program is, which attacks, is Slack and the services, and measures."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(LOOK_SECONDS)
        late.append(time.perf_counter() - began - LOOK_SECONDS)


async def _honest_change_goes_on(fleet, flow) -> None:  # type: ignore[no-untyped-def]
    card = fleet.slack.workspace.messages("C0APPROVALS")[0]
    await fleet.slack.click("U0APPROVER", card, "Approve")
    await fleet.slack.until(lambda: HONEST in flow.identities, timeout=120)
