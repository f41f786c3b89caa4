"""Tests that simulated processes can be killed and frozen."""

import asyncio
from contextvars import Context

from tests.simulation.days.loop import PROCESS, SimulationLoop
from tests.simulation.days.outside import at_their_place


def lived(strike: str) -> list[tuple[str, str]]:
    """Return what ran, and in which process, if a process is killed or frozen while it works."""
    loop = SimulationLoop(seed=1)
    ran: list[tuple[str, str]] = []

    async def work(name: str) -> None:
        await asyncio.sleep(1)
        ran.append((name, PROCESS.get()))

    async def serve() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("inherited"))
            group.create_task(work("new context"), context=Context())
            group.create_task(at_their_place(loop, work("service")))

    async def live() -> None:
        context = Context()
        context.run(PROCESS.set, "p1")
        loop.create_task(serve(), context=context)
        await asyncio.sleep(0.5)
        getattr(loop, strike)("p1")
        await asyncio.sleep(1)

    loop.set_exception_handler(lambda *_: None)
    loop.run_until_complete(live())
    loop.close()
    return sorted(ran)


def test_all_work_of_a_process_runs_in_it():
    assert lived("trace") == [("inherited", "p1"), ("new context", "p1"), ("service", "")]


def test_no_work_goes_on_after_a_kill_or_in_a_frozen_process():
    assert lived("kill") == lived("freeze") == [("service", "")]
