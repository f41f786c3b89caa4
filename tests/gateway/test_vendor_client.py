"""A client as vendors write them: it knows nothing of Gatehouse, and obeys `Retry-After`."""

import asyncio
import http.client
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import pytest
from aiohttp import web

from tests.gateway.conftest import EU, TOKENS
from tests.gateway.test_declining import assert_is_left

RETRIED = {429, 503}


@dataclass
class InventoryApi:
    """The client of an SDK: the address and the token are all that one can set."""

    base_url: str
    authtoken: str
    most_retries: int = 8
    slept: list[float] = field(default_factory=list)

    def items(self, organization_id: str) -> dict:
        return self._get("/items", {"organization_id": organization_id})

    def _get(self, path: str, query: dict[str, str]) -> dict:
        for _ in range(self.most_retries + 1):
            status, headers, body = self._once(path, {**query, "authtoken": self.authtoken})
            if status not in RETRIED:
                break
            self.slept.append(float(headers["Retry-After"]))
            time.sleep(self.slept[-1])
        answer = json.loads(body)
        if status != 200 or answer["code"] != 0:
            raise RuntimeError(f"{answer['code']}: {answer['message']}")
        return answer

    def _once(self, path: str, query: dict[str, str]) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            connection.request("GET", f"{parts.path}{path}?{urlencode(query)}")
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


@pytest.mark.slow
async def test_vendor_client_works_with_another_address_and_token(gateway):
    api = InventoryApi(f"{gateway.url}/eu", TOKENS["script"])
    answers = [await asyncio.to_thread(api.items, EU) for _ in range(3)]
    assert [answer["code"] for answer in answers] == [0, 0, 0]
    assert api.slept == []


@pytest.mark.slow
async def test_vendor_client_comes_again_when_it_is_told_to(gateway):
    go_on = asyncio.Event()

    async def answer(_request, _body):
        await go_on.wait()
        return web.json_response({"code": 0})

    gateway.upstream.answer = answer
    clients = [InventoryApi(f"{gateway.url}/eu", TOKENS["script"]) for _ in range(6)]
    calls = [asyncio.create_task(asyncio.to_thread(client.items, EU)) for client in clients]
    while sum(bool(client.slept) for client in clients) < 2:
        await asyncio.wait(calls, timeout=0.05)
    go_on.set()
    assert [call["code"] for call in await asyncio.gather(*calls)] == [0] * 6
    assert gateway.upstream.most_running == 4


@pytest.mark.slow
async def test_vendor_client_understands_a_decline(gateway, monkeypatch):
    began = time.monotonic()
    for _ in range(80):
        await gateway.status(f"/eu/items?organization_id={EU}")
    api = InventoryApi(f"{gateway.url}/eu", TOKENS["script"], most_retries=0)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with pytest.raises(RuntimeError, match=r"^44: "):
        await asyncio.to_thread(api.items, EU)
    assert_is_left(60, api.slept[0], began)
