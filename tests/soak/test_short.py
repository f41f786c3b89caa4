"""The short form of the soak: three processes, kills, and the same model at the end."""

import pytest

from tests.soak.soaking import soak


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_a_short_soak_ends_as_the_model_says(postgres_url):
    found = dict(await soak(postgres_url, 20.0, seed=7, kill_every_seconds=8.0))
    assert found["refusals that the bot provoked"] == 0
    assert found["kills -9"] >= 1
