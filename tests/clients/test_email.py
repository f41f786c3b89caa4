"""The email client: does the key work, and if not, what to do."""

import pytest
from pydantic import SecretStr
from yarl import URL

from bot.emailkey import EmailClient
from bot.services.errors import ResponseUnreadable
from tests.support.aioresponses_compat import FakeServices
from tests.support.http import Bench

BASE = "https://email.example.com"


def a_client(bench: Bench) -> EmailClient:
    return EmailClient(bench.http, URL(BASE), SecretStr("SG.key"), "bearer")


@pytest.mark.parametrize("body", ["", "  \n", "{}", "[]", '"fine"'])
async def test_any_json_and_no_body_at_all_mean_that_the_key_works(
    bench: Bench, services: FakeServices, body: str
) -> None:
    services.get(f"{BASE}/v3/scopes/mine", body=body)
    await a_client(bench).get("scopes/mine")
    assert [observed.outcome for observed in bench.observed] == ["ok"]


async def test_a_page_for_people_is_not_the_service(bench: Bench, services: FakeServices) -> None:
    services.get(
        f"{BASE}/v3/templates?generations=legacy%2Cdynamic", body="<html>Please log in</html>"
    )
    with pytest.raises(ResponseUnreadable):
        await a_client(bench).get("templates")
