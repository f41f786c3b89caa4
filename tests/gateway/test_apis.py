"""Test other APIs behind the gateway, with real HTTP on both sides."""

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from bot.gateway.clients import token_hash
from bot.quotas.messages import incident_card
from bot.quotas.store import incidents
from bot.settings import SettingsError
from tests.gateway.conftest import running_gateway
from tests.gateway.test_declining import open_incidents
from tests.gateway.test_faults import until
from tests.gateway.test_naming import check_gateway
from tests.support.settings import LEAST, read_settings

SECRET = "xero-secret-of-the-team"
CLIENTS = {
    "script": {"organizations": ["xero"], "methods": ["GET", "POST"]},
    "half": {"organizations": ["xero"], "share": 0.5},
    "other": {"organizations": "*"},
}
TOKENS = {name: {"token_sha256": token_hash(name), **client} for name, client in CLIENTS.items()}
NO_DATA_CENTER = {"inventory_data_centers": "{}"}


def xero(**changed) -> dict:
    return {
        "base_url": "UPSTREAM/api.xro/2.0",
        "token": SECRET,
        "limits": {"minute": 30},
        **changed,
    }


@asynccontextmanager
async def running(database_url, settings=NO_DATA_CENTER, **changed):
    apis = {"xero": xero(**changed)}
    async with running_gateway(
        database_url, apis=apis, gateway_clients=TOKENS, **settings
    ) as gateway:
        yield gateway


async def get(gateway, path="/xero/Invoices", client="script", method="GET", **rest):
    headers = {"Authorization": f"Bearer {client}", **rest.pop("headers", {})}
    async with gateway.session.request(
        method, f"{gateway.url}{path}", headers=headers, **rest
    ) as answer:
        await answer.read()
        return answer


async def message_of(answer) -> str:
    return (await answer.json())["message"]


async def test_path_query_and_headers_pass_unchanged(sqlite_url):
    async with running(sqlite_url) as gateway:
        path = (
            "/xero/Invoices/a%20b?organization_id=x&organization_id=y&where=%7B1&Organization-Id="
        )
        answer = await get(gateway, path, headers={"X-Organization-Id": "1", "Xero-tenant-id": "2"})
        assert (answer.status, await answer.json()) == (200, {"code": 0, "message": "success"})
        (got,) = gateway.upstream.got
        assert got.target == f"/api.xro/2.0{path.removeprefix('/xero')}"
        assert got.header("Authorization") == [f"Bearer {SECRET}"]
        assert got.header("X-Organization-Id") == ["1"]
        assert got.header("Xero-tenant-id") == ["2"]


async def test_only_the_credential_is_added(sqlite_url):
    async with running(sqlite_url) as gateway:
        headers = {"Authorization": "Bearer script"}
        skipped = ("Accept", "Accept-Encoding", "User-Agent")
        async with gateway.session.get(
            f"{gateway.url}/xero/a", headers=headers, skip_auto_headers=skipped
        ) as answer:
            assert answer.status == 200
        (got,) = gateway.upstream.got
        # Otherwise, the credential in a compressed answer couldn't be masked.
        expected = {"Host", "Authorization", "Accept-Encoding"}
        assert {name for name, _ in got.headers} == expected


@pytest.mark.parametrize("path", ["/xero/api.xro/2.0/Invoices", "/xero/organizations/1"])
async def test_the_path_is_always_appended_to_the_root(sqlite_url, path):
    async with running(sqlite_url) as gateway:
        assert (await get(gateway, path)).status == 200
        (got,) = gateway.upstream.got
        assert got.target == f"/api.xro/2.0{path.removeprefix('/xero')}"


@pytest.mark.parametrize(
    ("changed", "target", "headers"),
    [
        ({"query": "api_key"}, f"?page=2&api_key={SECRET}", {"X-Api-Key": "mine"}),
        (
            {"header": "X-Api-Key: key={token}"},
            "?api_key=mine&page=2",
            {"X-Api-Key": f"key={SECRET}"},
        ),
    ],
)
async def test_the_credential_is_sent_as_configured(sqlite_url, changed, target, headers):
    async with running(sqlite_url, **changed) as gateway:
        answer = await get(gateway, "/xero/a?api_key=mine&page=2", headers={"x-api-key": "mine"})
        assert answer.status == 200
        (got,) = gateway.upstream.got
        assert got.target == f"/api.xro/2.0/a{target}"
        for name, value in headers.items():
            assert got.header(name) == [value]
        assert got.header("Authorization") == []


async def test_the_credential_in_an_answer_is_starred(sqlite_url):
    async with running(sqlite_url) as gateway:
        gateway.upstream.responds(text=f"<{SECRET}>")
        answer = await get(gateway)
        assert await answer.text() == f"<{'*' * len(SECRET)}>"


@pytest.mark.parametrize(
    ("path", "client", "method", "status"),
    [
        ("/xero/a", "other", "GET", 403),
        ("/xero/a", "half", "POST", 403),
        ("/xero/a", "nobody", "GET", 401),
        ("/zero/a", "script", "GET", 404),
        ("/xero/", "script", "GET", 400),
        ("/xero/a%2F..%2Fb", "script", "GET", 400),
        ("/xero/a?_method=DELETE", "script", "GET", 400),
    ],
)
async def test_what_a_client_may_not_do_is_refused(sqlite_url, path, client, method, status):
    async with running(sqlite_url) as gateway:
        answer = await get(gateway, path, client, method)
        assert answer.status == status
        assert answer.headers["Gatehouse-Answered"] == "gateway"
        assert set(await answer.json()) == {"message"}
        assert gateway.upstream.got == []


async def test_the_whole_minute_is_for_clients_and_a_decline_has_no_code(database_url):
    async with running(database_url) as gateway:
        for number in range(15):
            assert (await get(gateway, client="half")).status == 200, number
        declined = await get(gateway, client="half")
        assert declined.status == 429
        assert "share" in await message_of(declined)
        for _ in range(15):
            assert (await get(gateway)).status == 200
        declined = await get(gateway)
        assert (declined.status, declined.headers["Gatehouse-Declined"]) == (429, "minute")
        assert set(await declined.json()) == {"message"}
        assert "30 calls per minute for xero" in await message_of(declined)
        assert 50 <= int(declined.headers["Retry-After"]) <= 61
        assert len(gateway.upstream.got) == 30
        later = (timedelta(seconds=61), 200)
        if gateway.world.bot.database.is_sqlite:
            gateway.world.clock.ahead += later[0]
            assert (await get(gateway)).status == later[1]


async def test_limits_of_the_day_and_at_once_and_a_reserve(sqlite_url):
    limits = {"day": 12, "concurrent": 2}
    async with running(sqlite_url, limits=limits, reserve={"day": 2}) as gateway:
        go_on = asyncio.Event()

        async def answer(_request, _body):
            await go_on.wait()
            return web.json_response({})

        gateway.upstream.answer = answer
        calls = [asyncio.create_task(get(gateway)) for _ in range(2)]
        await until(lambda: gateway.upstream.running, 2)
        assert (await get(gateway)).headers["Gatehouse-Declined"] == "concurrent"
        go_on.set()
        assert [done.status for done in await asyncio.gather(*calls)] == [200] * 2
        for _ in range(8):
            assert (await get(gateway)).status == 200
        declined = await get(gateway)
        assert declined.headers["Gatehouse-Declined"] == "day"
        assert "2 are reserved" in await message_of(declined)


def refusing(**headers):
    async def answer(_request, _body):
        return web.json_response({"code": 45, "message": "Slow down."}, status=429, headers=headers)

    return answer


async def test_a_429_is_one_alert_and_one_test_and_then_cleared(database_url):
    async with running(database_url) as gateway:
        world, slack = gateway.world, gateway.world.slack
        gateway.upstream.answer = refusing(**{"Retry-After": "2"})
        refused = await get(gateway)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
        assert "Gatehouse-Declined" not in refused.headers
        declined = await get(gateway)
        assert declined.headers["Gatehouse-Declined"] == "blocked"
        body = await declined.json()
        assert set(body) == {"message"}
        # Nothing but a client's call will be tried.
        assert "Gatehouse won't make any calls for" in body["message"]
        assert len(gateway.upstream.got) == 1
        (incident,) = await open_incidents(gateway)
        assert (incident.code, incident.detail.sent_code) == (0, None)
        card = await slack.until(lambda: next(iter(slack.workspace.messages("C0ALERTS")), None))
        assert "*xero* is blocked" in card.all_text
        assert "Slow down." in card.all_text
        assert "Mute 1 h" in card.all_text
        assert "Check now" not in card.all_text
        assert "A client can try again <!date" in card.all_text
        assert "Gatehouse will try again" not in card.all_text
        status = await world.ask("U0VIEWER", "/gatehouse", "status")
        assert "xero" in status.all_text

        # After the pause, exactly one of the waiting calls is the test.
        gateway.upstream.answer = None
        waiting = [
            asyncio.create_task(get(gateway, headers={"Prefer": "wait=30"})) for _ in range(5)
        ]
        if world.bot.database.is_sqlite:
            world.clock.ahead += timedelta(seconds=2)
        answers = await asyncio.gather(*waiting)
        assert [answer.status for answer in answers] == [200] * 5
        await until(lambda: open_incidents(gateway), [])
        await slack.until(lambda: "Cleared" in slack.workspace.messages("C0ALERTS")[0].all_text)
        (alert,) = [m for m in slack.workspace.messages("C0ALERTS") if m.thread_ts is None]
        assert "Cleared" in alert.all_text


async def test_a_refused_test_doubles_the_pause(sqlite_url):
    async with running(sqlite_url) as gateway:
        gateway.upstream.answer = refusing()
        for number, seconds in enumerate((60, 120, 240), start=1):
            assert (await get(gateway)).status == 429
            assert len(gateway.upstream.got) == number
            declined = await get(gateway)
            assert seconds - 10 <= int(declined.headers["Retry-After"]) <= seconds
            gateway.world.clock.ahead += timedelta(seconds=seconds + 1)
            # The gateway believes a decline for at most half a second.
            gateway.world.bot.inventory.gateway.forwarder.turns._declines.clear()
        assert len(await open_incidents(gateway)) == 1


async def test_a_call_that_was_never_sent_is_not_the_test(sqlite_url, monkeypatch):
    async with running(sqlite_url) as gateway:
        gateway.upstream.answer = refusing(**{"Retry-After": "2"})
        assert (await get(gateway)).status == 429
        gateway.upstream.answer = None
        gateway.world.clock.ahead += timedelta(seconds=3)
        gateway.world.bot.inventory.gateway.forwarder.turns._declines.clear()
        with monkeypatch.context() as patch:
            # For example, its client is gone by now.
            patch.setattr("bot.quotas.guard._Call.may_send", lambda _call: False)
            assert (await get(gateway)).status == 502
        assert (await get(gateway)).status == 200
        await until(lambda: open_incidents(gateway), [])


async def test_an_api_that_was_removed_is_not_blocked_for_ever(database_url):
    async with running(database_url) as gateway:
        gateway.upstream.answer = refusing()
        assert (await get(gateway)).status == 429
    # As long as the API is in the settings, only a client's call can end the block.
    async with running(database_url) as gateway:
        assert (await get(gateway)).headers["Gatehouse-Declined"] == "blocked"
        assert len(await open_incidents(gateway)) == 1
    async with running_gateway(database_url) as gateway:
        await until(lambda: open_incidents(gateway), [])
        async with gateway.world.bot.database.read_only() as tx:
            incident = await incidents.load(tx, "1")
        assert "*Closed*" in incident_card(incident, "xero").text
        assert "is no longer in the settings" in incident_card(incident, "xero").text
        assert "xero" not in (await gateway.world.ask("U0VIEWER", "/ratelimits")).all_text


def home(world) -> str:
    view = world.slack.workspace.homes.get("U0VIEWER")
    return view.all_text if view else ""


async def test_its_name_stands_alone(sqlite_url):
    async with running(sqlite_url, {}, limits={"minute": 30, "day": 1000}) as gateway:
        world = gateway.world
        for _ in range(25):
            assert (await get(gateway)).status == 200
        await world.slack.open_home("U0VIEWER")
        await world.slack.until(lambda: "*xero*: 25/30 this minute" in home(world))
        overview = await world.ask("U0VIEWER", "/ratelimits")
        assert "xero: 25/30 minute" in overview.text
        typo = await world.ask("U0VIEWER", "/ratelimits", "xerro")
        assert "xero" in typo.buttons
        gateway.upstream.answer = refusing()
        assert (await get(gateway)).status == 429
        await world.slack.open_home("U0VIEWER")
        await world.slack.until(lambda: "*xero* is blocked. " in home(world))
        blocked = await world.ask("U0VIEWER", "/ratelimits")
        assert "blocked" in blocked.text
        assert "(0)" not in blocked.all_text
        details = await world.ask("U0VIEWER", "/ratelimits", "xero")
        assert "set for this API, counted over 25 hours" in details.all_text


async def test_an_unknown_name_without_a_data_center_is_said_to_be_unknown(sqlite_url):
    async with running(sqlite_url) as gateway:
        unknown = await gateway.world.ask("U0VIEWER", "/ratelimits", "zero")
        assert "No organization is called “zero”." in unknown.all_text
        assert "INVENTORY_DATA_CENTERS" not in unknown.all_text
        assert "/orgs" not in unknown.all_text


async def test_ratelimits_shows_it_and_makes_no_call(sqlite_url):
    async with running(sqlite_url) as gateway:
        world = gateway.world
        for _ in range(3):
            await get(gateway)
        overview = await world.ask("U0VIEWER", "/ratelimits")
        assert "xero" in overview.all_text
        assert "3/30" in overview.all_text
        shown = await world.ask("U0VIEWER", "/ratelimits", "xero")
        assert "3/30" in shown.all_text
        assert "`script` (gateway) 3" in shown.all_text
        assert "Check now" not in shown.all_text
        assert "plan" not in shown.all_text
        checked = await world.ask("U0OPERATOR", "/ratelimits", "check xero")
        assert "makes no test calls" in checked.all_text
        planned = await world.ask("U0ADMIN", "/ratelimits", "plan xero free")
        assert "has no plan" in planned.all_text
        assert len(gateway.upstream.got) == 3
        page = world.bot.metrics.page().decode()
        assert 'client="script",data_center="xero",outcome="ok"} 3.0' in page
        assert 'gatehouse_service_calls_total{service="api",status="200"} 3.0' in page


async def test_orgs_does_not_list_it(sqlite_url):
    async with running(sqlite_url, {}) as gateway:
        assert "xero" not in (await gateway.world.ask("U0VIEWER", "/orgs")).all_text


async def test_a_write_is_on_record(sqlite_url):
    async with running(sqlite_url) as gateway:
        assert (await get(gateway, method="POST", data=b"abc")).status == 200
        answer = await gateway.world.ask("U0ADMIN", "/gatehouse", "audit 5")
        call = "`client:script` sent `POST` `/api.xro/2.0/Invoices` for `api/xero`"
        assert call in answer.all_text


USUAL = {"GATEWAY_PORT": "3001", "GATEWAY_CLIENTS": json.dumps(TOKENS)}
API = {**xero(), "base_url": "https://api.xero.com"}


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("eu", {}, "data center"),
        ("com.au", {}, "name"),
        ("testusers", {}, "testusers"),
        ("healthz", {}, "healthz"),
        ("Xero", {}, "lowercase"),
        ("xero", {"limits": {"minute": 0}}, "minute"),
        ("xero", {"limits": {}}, "at least one"),
        ("xero", {"query": "key", "header": "X: {token}"}, "either header or query"),
        ("xero", {"header": "X-Api-Key"}, "{token}"),
        ("xero", {"token": None}, "either token or oauth"),
        ("xero", {"reserve": {"minute": 30}}, "below the limit"),
        ("xero", {"reserve": {"day": 1}}, "below the limit"),
        ("xero", {"base_url": "http://api.xero.com"}, "https://"),
    ],
)
def test_what_cannot_be_is_said(name, changed, words):
    apis = {name: {key: value for key, value in {**API, **changed}.items() if value is not None}}
    clients = {"a": {"token_sha256": token_hash("a"), "organizations": "*"}}
    with pytest.raises(SettingsError) as caught:
        read_settings({**LEAST, "APIS": json.dumps(apis), "GATEWAY_CLIENTS": json.dumps(clients)})
    line = next(line for line in str(caught.value).splitlines() if "APIS" in line)
    assert words in line
    assert SECRET not in str(caught.value)


def test_two_apis_with_one_address_and_an_unknown_api_are_problems():
    apis = {"xero": API, "zero": API}
    with pytest.raises(SettingsError, match="same address"):
        read_settings({**LEAST, **USUAL, "APIS": json.dumps(apis)})
    with pytest.raises(SettingsError, match="APIS"):
        read_settings({**LEAST, **USUAL})


async def test_check_knows_it():
    found = await check_gateway(
        read_settings({**LEAST, **USUAL, "APIS": json.dumps({"xero": API})})
    )
    assert [one.sentence for one in found][1:] == [
        "can be called by script, half. This check doesn't call it."
    ]
    (alone,) = await check_gateway(read_settings({**LEAST, "APIS": json.dumps({"xero": API})}))
    assert alone.code == "half_configured"
