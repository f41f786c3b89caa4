"""The short form of the soak: three processes, kills, and the same model at the end."""

import pytest

from sandbox.services.limits import TOO_MANY_AT_ONCE
from tests.soak.actors import Pace
from tests.soak.crowds import SLOWED, declined, waiting
from tests.soak.soaking import soak


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
async def test_a_short_soak_ends_as_the_model_says(postgres_url):
    pace = Pace(seconds=10.0, kill_every=4.0, code=TOO_MANY_AT_ONCE, block_seconds=3.0)
    found = dict(await soak(postgres_url, pace, seed=7))
    assert found["refusals that the bot provoked"] == 0
    assert found["kills -9"] >= 1


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_flood_of_declined_calls_delays_no_other_organization(database_url):
    found = await declined(database_url, "here")
    assert found["gateway: slowed so many times, here"] <= SLOWED


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_free_slot_is_granted_within_a_second_while_calls_wait(sqlite_url):
    # The first minute's slots are free again after 60 s, of which 50 are skipped.
    found = await waiting(sqlite_url, seconds=16.0, name="here", count=1, skipped=50.0)
    assert found["gateway: refused by the service, here"] == 0
