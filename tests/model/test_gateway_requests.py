"""What a request may say: whatever could be read in two ways is refused."""

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
    tokens_of,
)

ROOTS = {"com": "/inventory/v1", "eu": "/inventory/v1", "com.au": "/inventory/v1"}


def refused(raw: str) -> int:
    with pytest.raises(GatewayRefusal) as refusal:
        target_of(raw, ROOTS)
    return int(refusal.value.status)


def test_path_and_query_pass_as_they_were_sent():
    target = target_of("/eu/items/a%20b?x=%7B1%7D&organization_id=10&y=", ROOTS)
    assert target.path == "/inventory/v1/items/a%20b"
    assert target.query == "x=%7B1%7D&organization_id=10&y="
    assert target.organization_id == "10"


def test_token_leaves_the_query():
    target = target_of("/com.au/items?a=1&authtoken=secret&b=2", ROOTS)
    assert target.query == "a=1&b=2"
    assert tokens_of([], "/com.au/items?a=1&authtoken=secr%65t", ["Bearer"]) == {"secret"}


def test_token_comes_from_the_header_too():
    schemes = ["Bearer", "Zoho-oauthtoken"]
    assert tokens_of(["bearer secret"], "/eu/x", schemes) == {"secret"}
    assert tokens_of(["Zoho-oauthtoken secret"], "/eu/x", schemes) == {"secret"}
    assert tokens_of(["Basic c2VjcmV0"], "/eu/x", schemes) == {""}
    assert tokens_of(["Bearer a", "Bearer b"], "/eu/x?authtoken=c", schemes) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("organizations", ()),
        ("organizations/11", ("11",)),
        ("Organizations/11/x", ("11",)),
        ("settings/organizations/11", ("11",)),
        ("%6frganizations/11", ("11",)),
    ],
)
def test_path_names_an_organization_in_any_spelling(path, named):
    assert target_of(f"/eu/{path}", ROOTS).path_organizations == named


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


@pytest.mark.parametrize("organization_id", ["0", "010", "1.", "a1", "1e3", "-1", "+1", "%D9%A1"])
def test_organization_id_is_digits(organization_id):
    assert refused(f"/eu/items?organization_id={organization_id}") == 400


@pytest.mark.parametrize("raw", ["/", "/us/items", "/EU/items", "/%65u/items", "/healthz"])
def test_unknown_data_center_is_not_found(raw):
    assert refused(raw) == 404


@pytest.mark.parametrize(
    "raw",
    [
        *("/eu", "/eu/", "/eu//items", "/eu/items//x"),
        *("/eu/..", "/eu/../com/items", "/eu/items/../../x", "/eu/./items", "/eu/..;/x"),
        *("/eu/%2e%2e/x", "/eu/%2E./x", "/eu/..%2fx", "/eu/a%2Fb", "/eu/a%5cb", "/eu/a\\b"),
        *("/eu/%252e%252e/x", "/eu/%00", "/eu/%0d%0aX:1", "/eu/%ff", "/eu/%zz", "/eu/%c0%ae"),
        *("http://evil.example/eu/items", "//evil.example/eu/items", "*", "eu/items", ""),
        *("/eu/items#x", "/eu/it ems", "/eu/it\x00ems", "/eu/\udcff", "/eu/ü"),
    ],
)
def test_path_that_may_leave_the_root_is_refused(raw):
    assert refused(raw) in {400, 404}


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
def test_what_is_taken_stays_under_the_root(pieces):
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


def test_headers_of_one_connection_and_credentials_stay_here():
    sent = [
        ("Accept", "application/json"),
        ("X-Custom", "1"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Host", "evil.example"),
        ("Authorization", "Bearer secret"),
        ("Cookie", "session=1"),
        ("Prefer", "wait=5"),
        ("Transfer-Encoding", "chunked"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Gatehouse-Declined", "minute"),
    ]
    kept = [("Accept", "application/json"), ("X-Custom", "1")]
    assert headers_to_send(sent) == [*kept, ("Accept-Encoding", "identity")]


def test_header_of_visible_characters_blanks_and_tabs_passes():
    sent = [("X-Text", "a \tb~\x80ü€\ud7ff\ue000"), ("Content-Encoding", "gzip")]
    assert headers_to_send(sent) == [*sent, ("Accept-Encoding", "identity")]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("X-HTTP-Method-Override", "DELETE", 403),
        ("X_HTTP_Method_Override", "DELETE", 403),
        ("X-Original-URL", "/admin", 400),
        ("X-com-zoho-inventory-organizationid", "11", 400),
        ("Organization_Id", "11", 400),
        ("X-Bytes", "\udcff", 400),
        ("X-Line", "a\nb", 400),
        ("X-Line", "\x00", 400),
        ("X-Line", "\x08", 400),
        ("X-Line", "\x1f", 400),
    ],
)
def test_header_that_changes_the_request_is_refused(name, value, status):
    with pytest.raises(GatewayRefusal) as refusal:
        headers_to_send([(name, value)])
    assert refusal.value.status == status


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
