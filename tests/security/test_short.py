"""Each attacker for some seconds; `python -m tests.security --seconds 60` is the long form."""

import pytest

from tests.security.attacking import ATTACKERS, attack

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ATTACKERS)
async def test_attacker_gets_nothing(name, sqlite_url):
    found = await attack(name, sqlite_url, 3.0, seed=7)
    assert ("got", "nothing") in found
