"""The flow client sends complete updates, and never mistakes a bad response for an empty list."""

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr
from yarl import URL

from bot.flows.client import FlowClient
from bot.services.errors import (
    CredentialsRefused,
    ResponseUnreadable,
    ServiceRefused,
)
from tests.support.http import Bench, FakeServices, web_server

SID = "FW00000000000000000000000000000001"
ADDRESS = f"https://flows.example.com/v2/Flows/{SID}/TestUsers"
PEOPLE = ["whatsapp:+15551234567", "ada@example.com", "zoë & 李, x"]


def a_client(bench: Bench, url: str = "https://flows.example.com", field: str = "testUsers"):
    return FlowClient(bench.http, URL(url), "AC1", SecretStr("t0ken"), field)


async def test_a_list_is_read_in_its_order_with_basic_credentials(
    bench: Bench, services: FakeServices
) -> None:
    services.get(ADDRESS, payload={"sid": SID, "test_users": PEOPLE, "url": ADDRESS})
    assert await a_client(bench).read(SID) == PEOPLE
    (sent,) = next(iter(services.requests.values()))
    scheme, pair = sent.kwargs["headers"]["Authorization"].split()
    assert (scheme, base64.b64decode(pair)) == ("Basic", b"AC1:t0ken")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"test_users": []}, []),
        ({"sid": SID.lower(), "test_users": ["a"]}, ["a"]),
        ({"sid": SID, "test_users": [""]}, []),
        ({"sid": SID, "testUsers": ["a", "b"]}, ["a", "b"]),
        ({"sid": SID, "test_users": ["a"], "links": {}}, ["a"]),
    ],
)
async def test_the_forms_of_a_list(
    bench: Bench, services: FakeServices, body: object, expected: list[str]
) -> None:
    services.get(ADDRESS, payload=body)
    assert await a_client(bench).read(SID) == expected


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"code": 20404, "message": "gone"}',
        "[]",
        "null",
        '{"test_users": "a,b"}',
        '{"test_users": [1]}',
        '{"sid": "FW00000000000000000000000000000002", "test_users": []}',
        "<html>",
        "",
    ],
)
async def test_an_answer_without_the_resource_is_not_an_empty_list(
    bench: Bench, services: FakeServices, body: str
) -> None:
    services.get(ADDRESS, body=body)
    with pytest.raises(ResponseUnreadable):
        await a_client(bench).read(SID)


async def test_only_the_first_error_of_a_large_list_is_read(bench: Bench) -> None:
    body = f'{{"sid": "{SID}", "test_users": [{",".join(["1"] * 500_000)}]}}'

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    began = time.process_time()
    json.loads(body)
    parsed = time.process_time()
    async with web_server(answer) as url:
        with pytest.raises(ResponseUnreadable, match="test_users"):
            await a_client(bench, url).read(SID)
    assert time.process_time() - parsed < 15 * (parsed - began)


@asynccontextmanager
async def open_form_server() -> AsyncIterator[tuple[str, list[list[tuple[str, str]]]]]:
    """Run a service that accepts every update and records the submitted forms."""
    forms: list[list[tuple[str, str]]] = []

    async def store(request: web.Request) -> web.Response:
        assert request.content_type == "application/x-www-form-urlencoded"
        form = [(name, str(value)) for name, value in (await request.post()).items()]
        forms.append(form)
        return web.json_response({"sid": SID, "test_users": [value for _, value in form]})

    async with web_server(store) as url:
        yield url, forms


@pytest.mark.parametrize("field", ["testUsers", "TestUsers"])
@pytest.mark.parametrize(
    ("identities", "values"),
    [(PEOPLE, PEOPLE), ([], [""])],
    ids=["a repeated field", "one empty value"],
)
async def test_an_update_is_one_form(
    bench: Bench, field: str, identities: list[str], values: list[str]
) -> None:
    async with open_form_server() as (url, forms):
        stored = await a_client(bench, url, field).replace(SID, identities)
    assert forms == [[(field, value) for value in values]]
    assert stored == identities


async def test_refusals_say_what_to_look_at(bench: Bench, services: FakeServices) -> None:
    services.get(ADDRESS, status=401)
    services.get(ADDRESS, status=404, payload={"message": "The resource was not found"})
    services.get(ADDRESS, status=404, body="<html>nginx</html>")
    with pytest.raises(CredentialsRefused, match="FLOW_AUTH_TOKEN"):
        await a_client(bench).read(SID)
    with pytest.raises(ServiceRefused, match=f"^The flow service can't find the flow {SID}"):
        await a_client(bench).read(SID)
    with pytest.raises(ServiceRefused, match=r"can't find this \(HTTP 404\)\. .*FLOW_BASE_URL"):
        await a_client(bench).read(SID)


async def test_only_a_refused_update_names_the_form_field(
    bench: Bench, services: FakeServices
) -> None:
    for method in ("GET", "POST"):
        services.add(ADDRESS, method, status=400, payload={"message": "Missing TestUsers"})
    with pytest.raises(ServiceRefused) as update:
        await a_client(bench).replace(SID, ["a"])
    assert "correct FLOW_FORM_FIELD" in update.value.sentence
    with pytest.raises(ServiceRefused) as reading:
        await a_client(bench).read(SID)
    assert "FLOW_FORM_FIELD" not in reading.value.sentence
