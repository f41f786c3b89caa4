"""For whom a call is made, and how the ledger names them."""

import pytest

from bot.services.calls import (
    CHECK,
    GATEWAY,
    PROBE,
    WATCH,
    CallCause,
    caller_of,
    client_named,
)


@pytest.mark.parametrize(
    ("cause", "caller"),
    [
        (CallCause(PROBE), ""),
        (CallCause(CHECK, "U1"), "U1"),
        (CallCause(GATEWAY, background=True, client="ci"), "client:ci"),
        (CallCause(GATEWAY, "U1", client="ci"), "client:ci"),
    ],
)
def test_caller_is_the_client_or_else_the_person(cause, caller):
    assert cause.caller == caller


@pytest.mark.parametrize(
    ("cause", "is_for_people"),
    [
        (CallCause(CHECK, "U1"), True),
        (CallCause(WATCH, background=True), False),
        (CallCause(PROBE), False),
    ],
)
def test_nobody_waits_for_the_background_or_for_a_probe(cause, is_for_people):
    assert cause.is_for_people is is_for_people


@pytest.mark.parametrize(
    ("caller", "client"),
    [(caller_of("ci"), "ci"), ("client:client:", "client:"), ("U1", None), (None, None)],
)
def test_clients_are_told_from_people_by_their_names_in_the_ledger(caller, client):
    assert client_named(caller) == client
