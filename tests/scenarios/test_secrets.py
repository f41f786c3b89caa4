"""No fault makes the bot reveal a secret in messages, logs, metrics, web pages or `repr`."""

import base64
import io
import json
from collections.abc import Iterator

import aiohttp
import pytest

from bot.ops.redaction import Redactor
from sandbox.services.faults import Fault, FaultKind
from tests.support.logs import log_into, logging_as_before
from tests.support.world import World, running_world

SECRETS = {
    "xoxb-sandbox",
    "demo-eu",
    "demo-flow-token",
    "SG.demo-key",
    "client-secret-word",
    "refresh-token-word",
    "metrics-token-word",
    base64.b64encode(b"apikey:SG.demo-key").decode(),
    base64.b64encode(b"AC00000000000000000000000000000001:demo-flow-token").decode(),
}
# A service that repeats every request in its response.
ECHO = "You sent demo-eu demo-flow-token SG.demo-key"
OAUTH_ECHO = "You sent client-secret-word refresh-token-word"
FAULTS = [
    {"kind": FaultKind.STATUS, "status": 400, "message": ECHO},
    {"kind": FaultKind.STATUS, "status": 401, "message": ECHO},
    {"kind": FaultKind.STATUS, "status": 403, "message": ECHO},
    {"kind": FaultKind.STATUS, "status": 500, "message": ECHO},
    {"kind": FaultKind.CODE, "code": 57, "message": ECHO},
    {"kind": FaultKind.HTML},
    {"kind": FaultKind.WRONG_TYPES},
    {"kind": FaultKind.RESET},
    {"kind": FaultKind.REDIRECT, "location": "http://127.0.0.1:9/?authtoken=demo-eu"},
    # The last fault, because it blocks the organizations.
    {"kind": FaultKind.STATUS, "status": 429, "message": ECHO},
]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Write all logs to a stream, without removing secrets, and yield the stream."""
    stream = io.StringIO()
    with logging_as_before():
        log_into(stream, "DEBUG", "json", Redactor())
        yield stream


async def visible(world: World) -> str:
    """Return everything that the bot shows on its web pages or has sent to Slack."""
    async with aiohttp.ClientSession() as session:
        pages = []
        for method, path in (
            ("GET", "/metrics"),
            ("GET", "/readyz"),
            ("GET", "/nowhere"),
            ("POST", "/slack/events"),
            ("GET", "/slack/events"),
        ):
            for headers in ({}, {"Authorization": "Bearer metrics-token-word"}):
                url = f"{world.slack.bot_url}{path}"
                async with session.request(method, url, headers=headers) as answer:
                    pages += [await answer.text(), str(answer.headers)]
    sent = [json.dumps(call.args, default=str) for call in world.slack.workspace.calls]
    shown = [message.all_text for message in world.slack.workspace.all_messages]
    return "\n".join([*pages, *sent, *shown])


def found_in(text: str) -> set[str]:
    return {secret for secret in SECRETS if secret in text}


async def test_no_failure_of_a_client_shows_a_secret(sqlite_url, logged, monkeypatch) -> None:
    monkeypatch.setattr("bot.services.http.RETRY_PAUSES_SECONDS", (0.0, 0.0))
    settings = {"metrics_token": "metrics-token-word", "commands_per_minute": "0"}
    async with running_world(sqlite_url, **settings) as world:
        for fault in FAULTS:
            for service in ("inventory", "flow", "email"):
                world.services.state.faults.add(Fault(service=service, **fault))
            for command, text in (
                ("/orgs", "refresh"),
                ("/testusers", "list welcome"),
                ("/emailkey", "check"),
                ("/emailkey", "templates"),
                ("/gatehouse", "status"),
            ):
                await world.ask("U0ADMIN", command, text)
            world.services.state.faults.lift()
        seen = await visible(world)
        assert found_in(repr(world.bot) + str(world.bot.settings)) == set()
    logs = logged.getvalue()
    assert "service call" in logs
    assert found_in(seen) == set()
    assert found_in(logs) == set()


@pytest.mark.parametrize("word", ["wrong", "right"])
async def test_no_way_to_renew_an_access_token_shows_a_secret(sqlite_url, logged, word) -> None:
    async with running_world(sqlite_url) as other:
        services = other.services
        oauth = {
            "client_id": "client",
            "client_secret": "client-secret-word",
            "refresh_token": "refresh-token-word",
            "token_url": services.token_url,
        }
        center = {"oauth": oauth, "base_url": services.inventory_url("eu")}
        centers = json.dumps({"eu": center})
        if word == "right":
            services.state.faults.add(Fault(FaultKind.CODE, "oauth", message=OAUTH_ECHO))
        path = sqlite_url.replace("gatehouse.db", "second.db")
        async with running_world(path, inventory_data_centers=centers) as world:
            assert "eu" in (await world.ask("U0ADMIN", "/orgs")).all_text
            seen = await visible(world)
    assert found_in(seen) == set()
    assert found_in(logged.getvalue()) == set()


async def test_unknown_error_is_a_reference_and_a_clean_log_line(
    sqlite_url, logged, monkeypatch
) -> None:
    async with running_world(sqlite_url) as world:
        redactor = Redactor(SECRETS)
        log_into(logged, "DEBUG", "json", redactor)

        async def broken(_: object) -> None:
            raise RuntimeError(f"unexpected: {ECHO}")

        monkeypatch.setattr(world.bot.emailkey, "check", broken)
        answer = await world.ask("U0ADMIN", "/emailkey", "check")
        seen = await visible(world)
    assert "Reference" in answer.all_text
    logs = logged.getvalue()
    assert "RuntimeError" in logs
    assert found_in(seen + logs) == set()
