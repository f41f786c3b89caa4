"""Making the stand-in Slack fail from another process."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from sandbox.slack.server import running_slack


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with running_slack() as slack, aiohttp.ClientSession(slack.address) as session:
        yield session


async def auth_test(http: aiohttp.ClientSession) -> tuple[int, str | None, dict[str, Any]]:
    headers = {"Authorization": "Bearer xoxb-sandbox"}
    async with http.post("/api/auth.test", headers=headers) as answer:
        is_json = answer.content_type == "application/json"
        said = await answer.json() if is_json else {}
        return answer.status, answer.headers.get("Retry-After"), said


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ({"kind": "ratelimit", "retry_after": 9}, 429, "ratelimited"),
        ({"kind": "error", "error": "token_revoked"}, 200, "token_revoked"),
        ({"kind": "status", "status": 503}, 503, None),
        ({"kind": "html"}, 502, None),
    ],
)
async def test_the_next_call_fails_as_asked_and_the_one_after_works(
    http: aiohttp.ClientSession, fault: dict[str, Any], status: int, error: str | None
) -> None:
    await http.post("/_control/faults", json={"method": "auth.test", **fault})
    got, retry_after, said = await auth_test(http)
    assert (got, said.get("error")) == (status, error)
    assert retry_after == ("9" if status == 429 else None)
    assert (await auth_test(http))[0] == 200


async def test_a_fault_without_end_is_lifted(http: aiohttp.ClientSession) -> None:
    fault = {"method": "*", "kind": "error", "error": "fatal_error", "times": None}
    await http.post("/_control/faults", json=fault)
    assert [(await auth_test(http))[2].get("error") for _ in range(3)] == ["fatal_error"] * 3
    await http.post("/_control/faults/lift", json={})
    assert (await auth_test(http))[2]["ok"]
    async with http.get("/_control/calls", params={"last": "2"}) as answer:
        calls = (await answer.json())["calls"]
    assert [call["answer"]["ok"] for call in calls] == [False, True]


async def test_an_unknown_fault_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.post("/_control/faults", json={"method": "x", "kind": "y"}) as answer:
        assert answer.status == 400
