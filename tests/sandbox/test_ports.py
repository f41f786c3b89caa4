"""Ports for programs that start: nobody else is given one meanwhile."""

import socket

import pytest

from sandbox.ports import HANDED_OUT_BY_NOBODY, free_port, port_near


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_port_that_is_taken_is_given_to_nobody(taken):
    assert port_near(taken) in HANDED_OUT_BY_NOBODY
    free = free_port()
    assert free in HANDED_OUT_BY_NOBODY
    assert port_near(free) == free
    assert port_near(65_536) in HANDED_OUT_BY_NOBODY
