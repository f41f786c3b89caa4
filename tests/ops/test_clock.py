"""The machine's clock, read in ways that go on while the machine sleeps."""

import time

import pytest

from bot.ops.clock import SystemClock, since_boot


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux counts time asleep")
def test_time_since_boot_goes_on_while_the_machine_sleeps(monkeypatch) -> None:
    readings = {time.CLOCK_BOOTTIME: 4711.0}
    monkeypatch.setattr(time, "clock_gettime", readings.__getitem__)
    assert (since_boot(), SystemClock().since_boot()) == (4711.0, 4711.0)
