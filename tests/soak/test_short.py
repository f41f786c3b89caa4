"""Runs short versions of the soak tests."""

import math

import pytest

from sandbox.services.limits import TOO_MANY_AT_ONCE
from tests.soak.actors import Pace
from tests.soak.crowds import LATEST_SECONDS, SLOWED, declined, waiting
from tests.soak.soaking import soak
from tests.soak.strangers import ACK_SECONDS, MOST_GROWTH_MIB, Counts, strangers
from tests.support.databases import copy_sqlite


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
async def test_a_short_soak_ends_as_the_model_says(postgres_url):
    # The work of a killed process is taken over after two seconds instead of thirty.
    launcher = ("-m", "tests.support.launch", "--short-leases")
    pace = Pace(6.0, 3.0, TOO_MANY_AT_ONCE, 2.0, launcher, answer_seconds=10.0)
    found = dict(await soak(postgres_url, pace, seed=7))
    assert found["refusals that the bot provoked"] == 0
    assert found["kills -9"] >= 1


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_flood_of_declined_calls_delays_no_other_organization(tmp_path, sqlite_template):
    slowed = []
    # Other tests can take the processor from the polite client: it gets three attempts.
    while len(slowed) < 3 and (not slowed or slowed[-1] > SLOWED):
        path = tmp_path / f"{len(slowed)}.db"
        copy_sqlite(sqlite_template, path)
        found = await declined(f"sqlite:///{path}", "here", math.inf)
        slowed.append(found["gateway: slowed so many times, here"])
    assert min(slowed) <= SLOWED


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_free_slot_is_granted_within_a_second_while_calls_wait(tmp_path):
    seconds = []
    # Other tests can hold up this machine for a second, so a late grant is measured once more.
    while len(seconds) < 2 and (not seconds or seconds[-1] > LATEST_SECONDS):
        url = f"sqlite:///{tmp_path}/{len(seconds)}.db"
        # The first minute's slots are free again after 60 s, of which 56 are skipped.
        found = await waiting(url, 7.0, "here", count=1, skipped=56.0, latest=math.inf)
        assert found["gateway: refused by the service, here"] == 0
        seconds.append(found["gateway: seconds to the latest grant of a free slot, here"])
    assert min(seconds) <= LATEST_SECONDS


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_unsigned_requests_neither_fill_the_memory_nor_delay_others(tmp_path):
    slowest = []
    # Other tests can hold up this machine for seconds, so a late answer is measured once more.
    while len(slowest) < 2 and (not slowest or slowest[-1] > ACK_SECONDS):
        url = f"sqlite:///{tmp_path}/{len(slowest)}.db"
        # Without the limits, each kind would leave or take several times what is allowed.
        counts = Counts(refused=150, hang_ups=600, chunked=20)
        found = await strangers(url, counts, latest=math.inf)
        for port in ("Slack", "gateway"):
            assert found[f"MiB after 150 refused bodies, {port}"] <= MOST_GROWTH_MIB
            assert found[f"MiB after 20 broken chunks, {port}"] <= MOST_GROWTH_MIB
        meanwhile = "slowest acknowledgement meanwhile"
        slowest.append(max(found[f"{meanwhile}, Slack"], found[f"{meanwhile}, gateway"]))
    assert min(slowest) <= ACK_SECONDS
