"""Tests that a slow drift between two clocks is never taken for a correction."""

import pytest

from bot.quotas import clock as clocks
from tests.conftest import BOTH
from tests.workflows.test_corrected import Bot, CorrectedClock


@pytest.fixture
def clock() -> CorrectedClock:
    return CorrectedClock()


@pytest.fixture
def moved(monkeypatch) -> list[float]:
    """Return the seconds by which calls were moved."""
    steps = list[float]()
    move = clocks.ledger.move

    async def note_move(tx, seconds: float) -> None:
        steps.append(seconds)
        await move(tx, seconds)

    monkeypatch.setattr(clocks.ledger, "move", note_move)
    return steps


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
@pytest.mark.parametrize("drift", [-0.1, 0.1])
async def test_a_drift_that_another_process_has_stored_moves_no_call(database, clock, moved, drift):
    bot = Bot(database, clock, restarts=False)
    for _ in range(20):
        clock.advance(60)
        clock.off += drift
        for process in (0, 1):
            await bot.call(process)
    assert moved == []
