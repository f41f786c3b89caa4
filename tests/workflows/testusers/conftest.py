"""A world for every test here."""

import pytest

from tests.support.testusers import World


@pytest.fixture
def world(database, clock) -> World:
    return World(database, clock)
