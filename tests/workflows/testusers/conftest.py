"""Provides the fixture `world` for the tests in this folder."""

import pytest

from tests.support.testusers import World


@pytest.fixture
def world(database, clock) -> World:
    return World(database, clock)
