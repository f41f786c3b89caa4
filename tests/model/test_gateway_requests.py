"""The gateway refuses requests that can be interpreted in two ways."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.gateway.rules import (
    GatewayRefusal,
    headers_to_send,
    seconds_to_wait,
    target_of,
)

ROOTS = {"com": "/inventory/v1", "eu": "/inventory/v1", "com.au": "/inventory/v1"}


def refused(raw: str) -> int:
    with pytest.raises(GatewayRefusal) as refusal:
        target_of(raw, ROOTS)
    return int(refusal.value.status)


@pytest.mark.parametrize(
    ("root", "path", "on_host"),
    [
        ("/inventory/v1", "items", "/inventory/v1/items"),
        ("/inventory/v1", "inventory/v1/items", "/inventory/v1/items"),
        ("/inventory/v1", "inventory/v3/invoices", "/inventory/v3/invoices"),
        ("/inventory/v1", "admin", "/inventory/v1/admin"),
        ("/inventory/v1", "Inventory/v1/items", "/inventory/v1/Inventory/v1/items"),
        ("/eu/inventory/v1", "inventory/v3/invoices", "/eu/inventory/v3/invoices"),
        ("/eu/inventory/v1", "items", "/eu/inventory/v1/items"),
        ("/eu/inventory/v1", "eu/items", "/eu/inventory/v1/eu/items"),
        ("/eu", "eu/x", "/eu/x"),
        ("/", "items", "/items"),
        ("/v1/", "items", "/v1/items"),
    ],
)
def test_path_that_begins_as_the_root_is_the_hosts(root, path, on_host):
    assert target_of(f"/eu/{path}", {"eu": root}).path == on_host


@pytest.mark.parametrize(
    "query",
    [
        *("organization_id=1&organization_id=2", "organization_id=1&organization_id=1"),
        *("organization_id=1&Organization_ID=2", "organization_id=1&organization%5Fid=2"),
        *("organization%5fid=2", "organization%255fid=2", "organization_id[]=2"),
        *("organization_id=1&organization_id[]=2", "organization.id=1", "organizationId=1"),
        *("organization_id=1;organization_id=2", "a=1;organization_id=2", "+organization_id=2"),
        *("organization_id=", "organization_id", "organization_id=1%002", "organization_id=1%262"),
        *("organization_id=../1", "organization_id=1%2F2", "organization_id=" + "1" * 65),
        *("authtoken=a&authtoken=b", "AuthToken=a", "authtoken[]=a", "x=1;authtoken=a"),
    ],
)
def test_query_that_could_name_two_is_refused(query):
    assert refused(f"/eu/items?{query}") == 400


def test_name_is_known_under_three_escapes():
    escaped = ["".join(("authtoke%", "25" * deep, "6e=a")) for deep in range(4)]
    assert [refused(f"/eu/items?{item}") for item in escaped[:3]] == [400] * 3
    assert target_of(f"/eu/items?{escaped[3]}", ROOTS).query == escaped[3]


PIECES = st.sampled_from(
    ["a", ".", "..", "%2e", "%2f", "%5c", "/", "\\", ";", "?", "&", "=", "organization_id", "1"]
)


@given(st.lists(PIECES, max_size=12))
def test_every_accepted_path_stays_under_the_root(pieces):
    raw = "/eu/" + "".join(pieces)
    try:
        target = target_of(raw, ROOTS)
    except GatewayRefusal:
        return
    segments = unquote(target.path).strip("/").split("/")
    assert all(segment and segment.split(";")[0] not in {".", ".."} for segment in segments)
    assert segments[0] == "inventory"
    names = [re.split("=", part)[0] for part in re.split("[&;]", target.query)]
    assert names.count("organization_id") <= 1


def test_header_of_visible_characters_blanks_and_tabs_passes():
    sent = [("X-Text", "a \tb~\x80ü€\ud7ff\ue000"), ("Content-Encoding", "gzip")]
    assert headers_to_send(sent) == [*sent, ("Accept-Encoding", "identity")]


@pytest.mark.parametrize(
    ("preferences", "seconds"),
    [
        ([], 0),
        (["wait=10"], 10),
        (['respond-async, wait="7"'], 7),
        (["Wait = 7; x=1"], 7),
        (["wait=100"], 60),
        (["wait=-1"], 0),
        (["wait=x", "wait=3"], 3),
        (["wait=" + "9" * 5000], 0),
    ],
)
def test_prefer_says_how_long_a_client_waits(preferences, seconds):
    assert seconds_to_wait(preferences) == seconds
