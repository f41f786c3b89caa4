"""The protocol of jobs, leases and POSTs in doubt, in every order of events: docs/protocol.md."""

from dataclasses import fields

import pytest

from tests.simulation.protocol.applying import Protocol
from tests.simulation.protocol.search import search

RULES = [field.name for field in fields(Protocol)]


def searched(protocol: Protocol):
    start = protocol.start(requests=2, processes=3, crashes=2)
    return search(start, protocol.steps, protocol.wrong_in, protocol.is_good_end)


def test_nothing_goes_wrong_in_any_order_of_events():
    found = searched(Protocol())
    assert found.wrong is None
    # To POSTs that land late, and are put right.
    assert {"0 is approved", "POST 1 lands", "POST 2 lands", "it sends POST 3"} <= {
        step for came in found.reached.values() if came for step in came[:1]
    }


@pytest.mark.parametrize("rule", RULES)
def test_without_any_of_the_rules_something_goes_wrong(rule):
    assert searched(Protocol(**{rule: False})).wrong is not None
