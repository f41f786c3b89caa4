"""The short form of the soak: three processes, kills, and the same model at the end."""

import pytest

from sandbox.services.limits import TOO_MANY_AT_ONCE
from tests.soak.actors import Pace
from tests.soak.gateway import soak as soak_gateway
from tests.soak.soaking import soak


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
async def test_a_short_soak_ends_as_the_model_says(postgres_url):
    pace = Pace(seconds=20.0, kill_every=8.0, code=TOO_MANY_AT_ONCE, block_seconds=4.0)
    found = dict(await soak(postgres_url, pace, seed=7))
    assert found["refusals that the bot provoked"] == 0
    assert found["kills -9"] >= 1


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
async def test_short_soak_of_the_gateway_provokes_no_refusal(postgres_url):
    found = await soak_gateway(postgres_url, seconds=12.0, kill_every=5.0, seed=7)
    assert found["gateway: refused by the service"] == 0
    assert found["gateway: calls counted by the service"] > 20
    assert found["gateway: kills"] >= 1
