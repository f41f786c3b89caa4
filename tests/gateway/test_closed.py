"""Test that forbidden requests cause no calls or gateway errors, and leak no credentials."""

import asyncio
import html
import itertools
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from urllib.parse import quote, quote_plus

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import select
from structlog.testing import capture_logs

from bot.gateway.clients import token_hash
from bot.organizations.rules import Organization
from bot.quotas.tables import quota_organizations
from tests.gateway.conftest import (
    EU,
    ITEMS,
    TOKENS,
    gateway_clients,
    hold_all,
    note_listed,
    running_gateway,
)
from tests.gateway.upstream import running_upstream

TOKEN = TOKENS["script"]
INVENTORY_SECRETS = ("inventory-eu-secret", "inventory-com-secret")
SECRET = INVENTORY_SECRETS[0]
FORGED = 3_000


async def raw(gateway, *requests: bytes) -> bytes:
    """Send raw bytes. Return all bytes received before the connection closes."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for request in requests:
        writer.write(request)
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


async def kept(gateway, requests: Iterator[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    """Send each request, and yield the request and its response. Reuse open connections."""
    host, port = gateway.url.removeprefix("http://").split(":")
    while request := next(requests, None):
        reader, writer = await asyncio.open_connection(host, int(port))
        with closing(writer):
            while request:
                writer.write(request.replace(b"Connection: close", b"Connection: keep-alive"))
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
                yield request, head + await reader.readexactly(int(length))
                is_kept = head.startswith(b"HTTP/1.1") and b"Connection: close" not in head
                request = next(requests, None) if is_kept else None


def request_of(
    target: str, method="GET", token=TOKEN, host="gateway", headers=(), body=b""
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    return head.encode("latin-1") + body


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_request_without_one_known_token_is_unauthorized(gateway):
    for authorization, query in (
        (None, ""),
        ("Bearer ", ""),
        ("Bearer wrong", ""),
        (f"Basic {TOKEN}", ""),
        (TOKEN, ""),
        (None, "&authtoken=wrong"),
        (f"Bearer {TOKEN}", "&authtoken=wrong"),
        (f"Bearer {TOKEN}", f"&authtoken={TOKENS['nightly']}"),
        (None, f"&AUTHTOKEN={TOKEN}"),
    ):
        headers = {"Authorization": authorization} if authorization else {}
        url = f"{gateway.url}{ITEMS}{query}"
        async with gateway.session.get(url, headers=headers) as answer:
            assert answer.status == 401
            message = (await answer.json())["message"]
            is_one = (authorization, query) in {("Bearer wrong", ""), (None, "&authtoken=wrong")}
            assert ("isn't known" in message, "exactly one" in message) == (is_one, not is_one)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert gateway.upstream.got == []


@pytest.mark.parametrize("authorization", ["Bearer ", "Basic x", ""])
async def test_an_empty_token_is_no_token(sqlite_url, authorization):
    clients = {"nobody": {"token_sha256": token_hash(""), "organizations": "*"}}
    async with running_gateway(sqlite_url, gateway_clients=json.dumps(clients)) as gateway:
        url = f"{gateway.url}{ITEMS}&authtoken={'' if authorization else ' '}"
        headers = {"Authorization": authorization}
        async with gateway.session.get(url, headers=headers) as answer:
            assert answer.status == 401
        assert gateway.upstream.got == []


async def test_client_reaches_nothing_but_its_own(gateway):
    for path, method, status in (
        ("/eu/items?organization_id=999", "GET", 403),
        ("/com/items?organization_id=" + EU, "GET", 403),
        ("/eu/organizations/999?organization_id=" + EU, "GET", 403),
        ("/com/organizations", "GET", 403),
        (ITEMS, "POST", 403),
        (ITEMS, "DELETE", 403),
        ("/in/items?organization_id=" + EU, "GET", 404),
        ("/nowhere", "GET", 404),
    ):
        async with gateway.call(path, "nightly", method=method) as answer:
            assert answer.status == status
            assert (await answer.json())["message"]
        assert gateway.upstream.got == []


FORMS = [
    *(
        "/eu/../com/items",
        "/eu/%2e%2e/x",
        "/eu/..%2f..%2fx",
        "/eu/a%2Fb",
        "/eu//x",
        "/eu/a%5c..%5cb",
    ),
    *("http://evil.example/eu/items", "//evil.example/eu/items", "/eu/..;/x", "/eu/%252e%252e/x"),
    *(
        "http://gateway/eu/x",
        "http://gateway@evil/eu/x",
        "http://gateway.evil/eu/x",
        "http://gateway:80/eu/x",
    ),
    *(
        "http://gateway",
        "http://gateway//eu/x",
        "http://gateway/eu/../com/x",
        "https://gateway/eu/x",
    ),
    *(f"{ITEMS}&organization_id=2", f"{ITEMS}&organization%5Fid=2", f"{ITEMS};organization_id=2"),
    *("*", "/eu", "/eu/", "/", "/eu/x#y", "/eu/\xff", "/eu/%00", "/eu/x?organization_id[]=1"),
]


async def test_two_spellings_of_a_header_both_pass(gateway):
    request = request_of(ITEMS, headers=[("X-A", "1"), ("x-a", "2")])
    assert status_of(await raw(gateway, request)) == 200
    assert gateway.upstream.got[0].header("x-a") == ["1", "2"]


async def test_host_of_the_client_goes_nowhere(gateway):
    request = request_of(ITEMS, host="evil.example:1")
    assert status_of(await raw(gateway, request)) == 200
    assert gateway.upstream.got[0].target.startswith(f"/eu/inventory/v1{ITEMS[3:]}&authtoken=")
    health = request_of("/healthz", token=None, host="evil.example:1")
    assert status_of(await raw(gateway, health)) == 200
    assert gateway.upstream.got[0].header("Host") == [gateway.upstream.url.removeprefix("http://")]


@pytest.mark.parametrize(
    "body", [b"organization_id=2", b'{"note": "authtoken"}', b"\\" * (1 << 20)]
)
async def test_body_is_not_searched(gateway, body):
    async with asyncio.timeout(30):
        assert status_of(await raw(gateway, request_of(ITEMS, "POST", body=body))) == 200
    assert gateway.upstream.got[0].body == body


async def test_a_header_that_is_not_text_is_malformed(gateway):
    answer = await raw(gateway, request_of(ITEMS, headers=[("X-Note", "\xff")]))
    assert status_of(answer) == 400
    assert b"characters that can't be forwarded" in answer
    assert gateway.upstream.got == []


async def test_a_call_counts_for_the_one_organization_that_it_names(gateway):
    other = "20065678"
    await note_listed(gateway.world, (EU, other))
    for target in (
        f"/eu/organizations/{other}?organization_id={EU}",
        f"/eu/organizations/{other}/x/organizations/{EU}",
    ):
        async with gateway.call(target) as answer:
            assert answer.status == 400
            assert "only one organization" in (await answer.json())["message"]
    assert gateway.upstream.got == []
    assert await gateway.status(f"/eu/organizations/{EU}") == 200
    assert "organization_id" not in gateway.upstream.got[0].target
    assert (await gateway.used()).made == 1
    assert await gateway.status(f"/eu/organizations/{EU}?organization_id={EU}") == 200


@pytest.mark.parametrize(
    "name", ["_method", "_METHOD", "%5Fmethod", "X-HTTP-Method-Override", "x_http_method"]
)
async def test_no_query_replaces_the_method(gateway, name):
    for sign in "&;":
        assert await gateway.status(f"{ITEMS}{sign}{name}=DELETE") == 400
    assert gateway.upstream.got == []
    assert await gateway.status(f"{ITEMS}&method=cash") == 200


async def test_a_body_in_a_coding_that_the_service_would_not_see_is_refused(gateway):
    head = request_of(ITEMS, "POST").replace(b"Content-Length: 0", b"Transfer-Encoding: %s")
    for coding, status in ((b"gzip, chunked", 400), (b"Chunked", 200)):
        answer = await raw(gateway, head % coding, b"2\r\n{}\r\n0\r\n\r\n")
        assert status_of(answer) == status
    assert [call.body for call in gateway.upstream.got] == [b"{}"]


@pytest.mark.parametrize("path", ["Organizations/999", "settings/organizations/999"])
async def test_path_names_no_other_organization_in_any_spelling(gateway, path):
    for client in ("nightly", "script"):
        assert await gateway.status(f"/eu/{path}?organization_id={EU}", client) == 403
    assert gateway.upstream.got == []


@pytest.mark.parametrize(
    "path",
    [
        "organizations;a/999",
        "organizations%3Ba/999",
        "organizations.json/999",
        "ORGANIZATIONS.JSON/999",
        "organizations(999)",
        "organizations:999",
        "organizations/999;a",
        "organizations/x999",
        "organizations/999.json",
        "organizations/²",
    ],
)
async def test_no_suffix_in_the_path_reaches_another_organization(gateway, path):
    for client in ("nightly", "script"):
        status = await gateway.status(f"/eu/{path}?organization_id={EU}", client)
        assert status in {400, 403}
    assert gateway.upstream.got == []


@pytest.mark.parametrize(
    "path",
    ["organizations", "organizations/", "Organizations", "organizations.json", "v2/organizations"],
)
async def test_limited_client_cannot_list_organizations(gateway, path):
    for query in ("", f"?organization_id={EU}"):
        assert await gateway.status(f"/eu/{path}{query}", "nightly") == 403
    assert gateway.upstream.got == []
    assert await gateway.status(f"/eu/{path}?organization_id={EU}") == 200
    assert await gateway.status(f"/eu/organizations/{EU}", "nightly") == 200
    assert await gateway.status(f"/eu/organizations/{EU}?organization_id={EU}", "nightly") == 200


@pytest.mark.parametrize("path", ["/eu/items", "/com/items", "/eu/organizations", "/eu/x?a=1"])
async def test_refusal_names_no_organization_that_the_client_did_not_name(gateway, path):
    default = Organization(organization_id="20069999", name="Other", is_default_org=True)
    for center in ("eu", "com"):
        await gateway.world.bot.inventory.directory.accept(center, (default,))
    async with gateway.call(path, "nightly") as answer:
        assert answer.status == 403
        assert "20069999" not in f"{await answer.text()} {answer.headers}"
    assert gateway.upstream.got == []


@pytest.mark.parametrize(
    "target", ["/eu/items?" + "&" * 100, "/eu/items?" + "a;" * 100, "/eu" + "/a" * 101]
)
async def test_request_of_very_many_parts_is_malformed(gateway, target):
    assert status_of(await raw(gateway, request_of(target))) == 400
    assert gateway.upstream.got == []


@pytest.mark.parametrize(
    "template",
    [
        "Bearer {token}",
        "Token token={token}",
        'Token token="{token}"',
        "{token}",
        "key={token};v=1",
    ],
)
async def test_no_part_of_an_answer_has_the_credential(sqlite_url, template):
    async def answer(request, _body):
        (sent,) = request.headers.getall("Authorization")
        assert SECRET in sent
        head = (
            f"HTTP/1.1 400 bad {sent}\r\nX-Sent: {sent}\r\nX-Tok-{SECRET}: 1\r\n"
            f"Location: /?a={SECRET}\r\n"
        )
        body = f"{sent} {SECRET}".encode()
        request.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await asyncio.sleep(0)
        request.transport.close()
        return web.Response()

    settings = {"inventory_auth": "header", "inventory_auth_header": template}
    async with running_gateway(sqlite_url, **settings) as gateway:
        gateway.upstream.answer = answer
        got = await raw(gateway, request_of(ITEMS))
    assert status_of(got) == 400
    assert SECRET.encode() not in got
    assert b"*" * len(SECRET) in got


ODD_SECRET = "1000.a/b+c=&d'-e ü"
SIGN = "[^a-z0-9]"
ESCAPED = {
    "url": quote(ODD_SECRET, safe=""),
    "url in small letters": quote(ODD_SECRET, safe="").lower(),
    "url but for the slash": quote(ODD_SECRET),
    "form": quote_plus(ODD_SECRET),
    "json": ODD_SECRET.replace("/", "\\/"),
    "json in ascii": json.dumps(ODD_SECRET)[1:-1],
    "json for html": re.sub("[=&'+]", lambda sign: f"\\u{ord(sign[0]):04x}", ODD_SECRET),
    "html": html.escape(ODD_SECRET),
    "html in numbers": re.sub(SIGN, lambda sign: f"&#{ord(sign[0])};", ODD_SECRET),
    "html in hex": re.sub(SIGN, lambda sign: f"&#x{ord(sign[0]):X};", ODD_SECRET),
}


@pytest.mark.parametrize("form", ESCAPED)
async def test_no_escaping_reveals_the_credential(sqlite_url, form):
    secret = ESCAPED[form]
    async with running_upstream() as upstream:
        center = {"authtoken": ODD_SECRET, "base_url": f"{upstream.url}/eu/inventory/v1"}
        settings = {"inventory_data_centers": json.dumps({"eu": center})}
        async with running_gateway(sqlite_url, **settings) as gateway:
            upstream.responds(headers={"X-Sent": f"<{secret}>"}, text=f"<{secret}>")
            async with gateway.call(ITEMS) as answer:
                assert await answer.text() == f"<{'*' * len(secret.encode())}>"
                assert answer.headers["X-Sent"] == f"<{'*' * len(secret.encode())}>"
            assert upstream.got[-1].target.endswith(f"&authtoken={quote_plus(ODD_SECRET)}")


async def test_answers_name_no_version(gateway):
    for path, client in (("/healthz", None), (ITEMS, None), ("/in/x", "script")):
        async with gateway.call(path, client) as answer:
            assert answer.headers["Server"] == "Gatehouse"
    gateway.upstream.responds(headers={"Server": "the-service"})
    async with gateway.call(ITEMS) as answer:
        assert answer.headers["Server"] == "the-service"
    got = await raw(gateway, b"nonsense\r\n\r\n")
    assert b"aiohttp" not in got


@pytest.mark.parametrize(
    ("organization_id", "status"), [("999", 403), ("020061234", 400), (f"{EU}.", 400), ("x", 400)]
)
async def test_client_of_everything_reaches_what_is_listed(gateway, organization_id, status):
    assert await gateway.status(f"/eu/items?organization_id={organization_id}") == status
    async with gateway.world.bot.database.read_only() as tx:
        rows = list(await tx.connection.execute(select(quota_organizations.c.organization_id)))
    assert organization_id not in {row.organization_id for row in rows}


async def test_second_request_in_a_body_is_a_body(gateway):
    inner = request_of("/eu/items?organization=2", "POST")
    answer = await raw(gateway, request_of(ITEMS, "POST", body=inner))
    assert (status_of(answer), len(gateway.upstream.got)) == (200, 1)
    assert gateway.upstream.got[0].body == inner


def junk(dice: random.Random) -> str:
    return quote("".join(chr(dice.randrange(0x21, 0x7F)) for _ in range(dice.randrange(1, 12))), "")


# Each request has at least one mistake.
FORGERIES = {
    "no token": lambda dice: request_of(ITEMS, token=dice.choice([None, "", " "])),
    "wrong token": lambda dice: request_of(
        dice.choice([ITEMS, *FORMS]), token=dice.choice([junk(dice), TOKEN[:-1], TOKEN.upper()])
    ),
    "two tokens": lambda dice: request_of(f"{ITEMS}&authtoken={junk(dice)}"),
    "another organization": lambda dice: request_of(
        dice.choice(
            [
                f"/eu/{junk(dice)}?organization_id={dice.randrange(10**8)}",
                f"/eu/organizations/{dice.randrange(10**8)}?organization_id={EU}",
                f"/eu/{junk(dice)}",
            ]
        ),
        token=TOKENS["nightly"],
    ),
    "another method": lambda dice: request_of(
        ITEMS, dice.choice(["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "BREW"])
    ),
    "another data center": lambda dice: request_of(
        dice.choice(["/in/x", "/EU/x", f"/{junk(dice)}/x", "/com%2f/x", "/com;/x"])
    ),
    "another path": lambda dice: request_of(dice.choice(FORMS)),
    "dots and slashes": lambda dice: request_of(
        f"/eu/{junk(dice)}/"
        + "/".join(
            dice.choice(["..", "%2e%2e", ".%2E", "..;x", "a%2Fb", "%5c..", "%252e"])
            for _ in range(dice.randrange(1, 5))
        )
    ),
    "absolute address": lambda dice: request_of(
        dice.choice(["http:", "https:", "ftp:", ""]) + f"//{junk(dice)}.example/eu/items"
    ),
    "host": lambda dice: request_of(ITEMS, token=junk(dice), host=f"{junk(dice)}.example"),
    "smuggled header": lambda dice: request_of(
        ITEMS,
        "POST",
        headers=[
            dice.choice(
                [
                    ("X-HTTP-Method-Override", "DELETE"),
                    ("X-Inventory-Organization-Id", junk(dice)),
                    ("X-Original-URL", f"/{junk(dice)}"),
                    ("Transfer-Encoding", "chunked"),
                    ("Content-Length", "0"),
                    ("Authorization", f"Bearer {junk(dice)}"),
                    ("X-Bad", "a\x01b"),
                    ("X-Bad ", "a"),
                ]
            )
        ],
        body=b"x",
    ),
    "organization twice": lambda dice: request_of(
        f"{ITEMS}{dice.choice('&;')}"
        + dice.choice(["organization_id", "organization%5Fid", "Organization_Id", "organizationid"])
        + f"={junk(dice)}"
    ),
}


@pytest.mark.slow
async def test_forged_requests_make_no_call(gateway, capsys, caplog):
    dice = random.Random(17)
    kinds = itertools.cycle(FORGERIES)
    made: dict[bytes, str] = {}
    seen: dict[str, set[int]] = {kind: set() for kind in FORGERIES}

    def forged() -> Iterator[bytes]:
        while len(made) < FORGED:
            kind = next(kinds)
            request = FORGERIES[kind](dice).replace(b"Host:", b"X-Number: %d\r\nHost:" % len(made))
            made[request] = kind
            yield request

    async def forge() -> None:
        async for request, answer in kept(gateway, forged()):
            assert 400 <= status_of(answer) < 500, (request, answer[:200])
            assert not any(secret.encode() in answer for secret in INVENTORY_SECRETS)
            seen[made[request]].add(status_of(answer))

    await asyncio.gather(*(forge() for _ in range(20)))
    assert gateway.upstream.got == []
    assert (await gateway.used()) is None
    assert seen["no token"] == {401}
    assert 401 in seen["wrong token"] & seen["host"]
    assert seen["another organization"] <= {400, 403}
    assert {400, 401, 403, 404} <= set().union(*seen.values())
    logged = capsys.readouterr().out + caplog.text
    assert not any(secret in logged for secret in (*TOKENS.values(), *INVENTORY_SECRETS))


async def test_who_has_no_token_fills_no_log(gateway):
    with capture_logs() as lines:
        assert await gateway.status(ITEMS, None) == 401
    assert [line["log_level"] for line in lines] == ["debug"]


async def test_no_credential_is_in_a_log_or_a_metric(gateway, capsys, caplog):
    caplog.set_level("DEBUG")
    await gateway.status(ITEMS)
    await gateway.status(f"/eu/items?organization_id={EU}&authtoken={TOKEN}", None)
    await gateway.status(f"/eu/items?organization_id={EU}&x=1&x=2", "nightly", method="POST")
    await raw(gateway, f"GET {ITEMS}&authtoken={TOKEN} HTTP/9.9\r\n\r\n".encode())
    metrics = gateway.world.bot.metrics.page()
    told = capsys.readouterr().out + caplog.text + metrics.decode()
    assert "gateway request" in told
    assert not any(secret in told for secret in (*TOKENS.values(), *INVENTORY_SECRETS))
    assert 'gatehouse_gateway_requests_total{client="script",data_center="eu",outcome="ok"}' in told


async def test_two_clients_that_wait_leave_a_third_its_calls(sqlite_url):
    """Two clients keep as many requests open as they can, for an organization that is full."""
    own = gateway_clients(nightly={"organizations": ["com/20061234"]})
    async with (
        running_gateway(sqlite_url, gateway_clients=own) as gateway,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as gateway.session,
    ):
        go_on, held = await hold_all(gateway)
        gateway.upstream.answer = None
        server, wait = gateway.world.bot.inventory.gateway, {"Prefer": "wait=60"}
        for client in ("script", "quarter"):
            held += [
                asyncio.create_task(gateway.status(ITEMS, client, headers=wait)) for _ in range(200)
            ]
        while server._running.total() < server.most_at_once:
            await asyncio.wait(held, timeout=0.01)
        items = "/com/items?organization_id=20061234"
        assert [await gateway.status(items, "nightly") for _ in range(20)] == [200] * 20
        go_on.set()
        for call in held:
            call.cancel()
        await asyncio.gather(*held, return_exceptions=True)


async def test_a_client_with_too_many_open_requests_is_refused(gateway, monkeypatch):
    monkeypatch.setattr("bot.gateway.server.MOST_AT_ONCE", 0)
    async with gateway.call(ITEMS) as answer:
        assert answer.status == 429
        assert answer.headers["Gatehouse-Declined"] == "concurrent"
        assert json.loads(await answer.read())["code"] == 1070
    assert gateway.upstream.got == []
