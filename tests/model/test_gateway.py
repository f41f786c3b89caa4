"""Who a client is, what it may do, and how much of the limits is its share."""

import pytest

from bot.gateway.rules import (
    GatewayClient,
    token_hash,
)
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import Limits
from bot.services.calls import caller_of, client_named

TEN = OrganizationKey("eu", "10")


def a_client(name="nightly", token="secret", organizations=frozenset({TEN})):
    return GatewayClient(name, token_hash(token), organizations, frozenset({"GET"}), share=1.0)


def test_token_hash_is_not_printed():
    assert token_hash("secret") not in repr(a_client())


def test_ledger_tells_clients_from_people():
    assert client_named(caller_of("nightly")) == "nightly"
    assert client_named("U0OPERATOR") is None
    assert client_named(None) is None


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1.0, Limits(80, 800, 4)),
        (0.25, Limits(20, 200, 1)),
        (0.001, Limits(1, 1, 1)),
    ],
)
def test_share_is_of_what_people_leave(share, expected):
    assert Limits(100, 1000, 5).share(share) == expected
