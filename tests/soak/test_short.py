"""The short form of the soak: three processes, kills, and the same model at the end."""

import pytest

from sandbox.services.limits import TOO_MANY_AT_ONCE
from tests.soak.actors import Pace
from tests.soak.soaking import soak


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
async def test_a_short_soak_ends_as_the_model_says(postgres_url):
    pace = Pace(seconds=8.0, kill_every=4.0, code=TOO_MANY_AT_ONCE, block_seconds=3.0)
    found = dict(await soak(postgres_url, pace, seed=7))
    assert found["refusals that the bot provoked"] == 0
    assert found["kills -9"] >= 1
