"""Time stands still while the process does, and goes on while it waits or works."""

import asyncio
import time

import pytest

from tests.support.steady import SteadyClock, SteadyLoop, SteadyTime


class Machine:
    """What a thread sees of the machine's clocks."""

    def __init__(self) -> None:
        self.passed = self.worked = 0.0
        self.time = SteadyTime(lambda: self.passed, lambda: self.worked)

    def stand_still(self, seconds) -> None:
        self.passed += seconds

    def work(self, seconds) -> None:
        self.passed += seconds
        self.worked += seconds


def test_only_standing_still_does_not_count():
    machine = Machine()
    machine.stand_still(3.7)
    assert machine.time() == 0
    machine.work(1.5)
    assert machine.time() == 1.5
    machine.stand_still(0.1)
    assert machine.time() == pytest.approx(1.6)
    machine.stand_still(0.1)
    assert machine.time(waited=0.1) == pytest.approx(1.7)
    machine.stand_still(5.1)
    assert machine.time(waited=0.1) == pytest.approx(1.8)


def stand_still(seconds) -> None:
    time.sleep(seconds)


async def test_timeout_is_not_over_because_the_process_stood_still():
    assert isinstance(asyncio.get_running_loop(), SteadyLoop)
    clock = SteadyClock()
    before = clock.monotonic()
    async with asyncio.timeout(0.4):
        stand_still(0.5)
        await asyncio.sleep(0.01)
    assert clock.monotonic() - before < 0.4


async def test_timeout_is_over_after_so_many_seconds_of_waiting():
    clock = SteadyClock()
    before = clock.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await asyncio.Event().wait()
    assert clock.monotonic() - before >= 0.3
