"""No request or text causes a 500 response, a missing acknowledgement or unescaped output."""

import asyncio
import io
import json
import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from yarl import URL

from sandbox.slack.delivery import sign
from sandbox.slack.messages import Message, View
from tests.support.world import World, running_world

FUZZ = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FORM = "application/x-www-form-urlencoded"
COMMANDS = ["/orgs", "/ratelimits", "/testusers", "/emailkey", "/gatehouse", "/nothing"]
HOSTILE = [
    "<!channel>",
    "<!here|x>",
    "<@U0ADMIN>",
    "<https://evil.example|friend>",
    "&lt;!channel&gt;",
    "*bold* _it_ ~no~ `code`",
    "“list” —now",
    "add welcome",
    "list welcome",
    "because",
    "for 2h",
    "now",
    "\u202egnp",
    "\x00\x07",
    "😀" * 50,
    "x" * 4000,
    "\n\n> quote",
    "'",
    '"',
    "%s{0}",
    "../../etc",
    "1' OR 1=1 --",
]
# Bolt reads the view's type if a middleware is a function.
WITHOUT_TYPE = '{"type": "view_submission", "view": {"callback_id": "x"}}'
# Active markup in Slack, which must never come from typed text.
LIVE = re.compile(r"<[!@#](?!date\^)|<https?:|<mailto:")

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


async def post(world: World, body: bytes, content_type: str) -> int:
    """Sign the body, and send it in a POST request. Return the response status."""
    timestamp = str(int(time.time()))
    text = body.decode("utf-8", "replace")
    headers = {
        "Content-Type": content_type,
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": sign(world.slack.signing_secret, timestamp, text),
    }
    async with (
        asyncio.timeout(30),
        aiohttp.ClientSession() as session,
        session.post(
            f"{world.slack.bot_url}/slack/events", data=io.BytesIO(body), headers=headers
        ) as answer,
    ):
        return answer.status


def markup_in(answer: Message) -> list[str]:
    """Return each part of a message that Slack would render as markup."""

    def walk(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            if part.get("type") == "mrkdwn":
                yield part["text"]
            part = list(part.values())
        if isinstance(part, list):
            for item in part:
                yield from walk(item)

    return [answer.text, *walk(answer.blocks)]


def command_fields() -> st.SearchStrategy[dict[str, str]]:
    text = st.one_of(
        st.text(max_size=60), st.lists(st.sampled_from(HOSTILE), max_size=4).map(" ".join)
    )
    return st.fixed_dictionaries(
        {"command": st.sampled_from(COMMANDS)},
        optional={
            "text": text,
            "user_id": st.sampled_from(["U0ADMIN", "U0NOROLE", "U0STRANGER", "", "U\u0000"]),
            "team_id": st.sampled_from(["T0GATEHOUSE", "T0OTHER", "", "x"]),
            "channel_id": st.text(max_size=10),
            "trigger_id": st.text(max_size=10),
            "response_url": st.sampled_from(["", "not a url", "http://127.0.0.1:9/x"]),
            "is_enterprise_install": st.sampled_from(["true", "false", "?"]),
        },
    )


def payloads() -> st.SearchStrategy[object]:
    user = st.fixed_dictionaries({}, optional={"id": st.text(max_size=10), "team_id": junk})
    action = st.fixed_dictionaries(
        {},
        optional={
            "action_id": st.sampled_from(["orgs.page.next", "orgs.refresh", "emailkey.page.x", "?"])
            | st.text(max_size=10),
            "block_id": st.text(max_size=5),
            "value": junk,
            "type": st.sampled_from(["button", "static_select"]),
            "selected_option": junk,
        },
    )
    view = st.fixed_dictionaries(
        {},
        optional={
            "callback_id": st.text(max_size=10),
            "state": junk,
            "private_metadata": junk,
            "id": junk,
        },
    )
    kinds = ["block_actions", "view_submission", "view_closed", "block_suggestion", "shortcut"]
    return st.one_of(
        junk,
        st.fixed_dictionaries(
            {"type": st.sampled_from(kinds) | st.text(max_size=8)},
            optional={
                "user": user | junk,
                "team": st.just({"id": "T0GATEHOUSE"}) | junk,
                "actions": st.lists(action, max_size=2) | junk,
                "view": view | junk,
                "action_id": st.text(max_size=8) | junk,
                "callback_id": st.text(max_size=8) | junk,
                "block_id": junk,
                "value": junk,
                "container": junk,
                "channel": junk,
                "message": junk,
                "enterprise": junk,
                "response_url": junk,
                "trigger_id": junk,
            },
        ),
    )


def events() -> st.SearchStrategy[object]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["event_callback", "url_verification", "app_rate_limited"])
            | junk,
            "challenge": junk,
            "event": st.dictionaries(st.sampled_from(["type", "user", "x"]), junk) | junk,
            "team_id": junk,
            "authorizations": junk,
            "payload": junk,
            "command": junk,
            "ssl_check": junk,
        },
    )


def bodies() -> st.SearchStrategy[tuple[bytes, str]]:
    data = "application/json"
    return st.one_of(
        st.tuples(st.binary(max_size=200), st.sampled_from([FORM, data, "text/plain", "?", ""])),
        command_fields().map(lambda fields: (urlencode(fields).encode(), FORM)),
        payloads().map(lambda item: (urlencode({"payload": json.dumps(item)}).encode(), FORM)),
        events().map(lambda item: (json.dumps(item).encode(), data)),
        events().map(lambda item: (json.dumps(item).encode(), FORM)),
    )


@FUZZ
@given(sent=bodies())
@example(sent=(urlencode({"payload": '{"type": "", "view": null}'}).encode(), FORM))
@example(sent=(urlencode({"payload": '{"type": "", "view": []}'}).encode(), FORM))
@example(sent=(urlencode({"payload": WITHOUT_TYPE}).encode(), FORM))
async def test_nothing_signed_is_a_500_or_stays_unanswered(world: World, sent) -> None:
    status = await post(world, *sent)
    assert status in {200, 400, 401, 404}


@FUZZ
@given(fields=command_fields(), text=st.text(max_size=100) | st.sampled_from(HOSTILE))
@example(fields={"command": "/testusers"}, text="list welcome")
async def test_every_command_is_acknowledged_and_answered(world: World, fields, text) -> None:
    text = text.encode("utf-8", "replace").decode()
    workspace = world.slack.workspace
    seen = {ephemeral.ts for ephemeral in workspace.ephemerals("U0ADMIN")}
    delivery = await world.slack.command(
        "U0ADMIN", "C0GENERAL", fields["command"], text, as_typed=False
    )
    assert delivery.status == 200

    def come() -> View | Message | None:
        new = [
            ephemeral for ephemeral in workspace.ephemerals("U0ADMIN") if ephemeral.ts not in seen
        ]
        answers = [item for item in new if "Working on it" not in item.all_text]
        return workspace.open_view("U0ADMIN") or next(iter(answers), None)

    answer = await world.slack.until(come)
    if isinstance(answer, View):
        workspace.close(answer)
    else:
        # The page of a list has a link to the flow service.
        ours = f"<{world.services.url}/v2/Flows/"
        markup = [part.replace(ours, "") for part in markup_in(answer)]
        assert not [part for part in markup if LIVE.search(part)]


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("form", [True, False])
async def test_deep_json_is_refused(world: World, depth: int, form: bool) -> None:
    deep = "[" * depth + "]" * depth
    body = (
        urlencode({"payload": deep}) if form else f'{{"type": "event_callback", "event": {deep}}}'
    )
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    assert await post(world, body.encode(), kind) in {200, 401, 404}


async def test_a_body_that_never_ends_is_given_up(sqlite_url, monkeypatch) -> None:
    monkeypatch.setattr("handlers.endpoint.BODY_SECONDS", 0.2)
    async with running_world(sqlite_url) as world:
        url = URL(str(world.slack.bot_url))
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


HALF = (
    b"POST /slack/events HTTP/1.1\r\nHost: gatehouse\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ncommand=%2Forgs"
)


async def test_a_caller_who_hangs_up_is_no_error(world: World, caplog) -> None:
    url = URL(str(world.slack.bot_url))
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(HALF)
    await writer.drain()
    writer.transport.abort()
    await world.ask("U0VIEWER", "/orgs")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
