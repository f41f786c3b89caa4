"""The email client: does the key work, and if not, what to do."""

import pytest
from pydantic import SecretStr
from yarl import URL

from bot.emailkey import EmailClient
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ResponseUnreadable,
    ServiceRefused,
)
from tests.support.aioresponses_compat import FakeServices
from tests.support.http import Bench

BASE = "https://email.example.com"


def a_client(bench: Bench, auth="bearer") -> EmailClient:
    return EmailClient(bench.http, URL(BASE), SecretStr("SG.key"), auth)


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


async def test_a_wrong_key_and_a_missing_permission_are_told_apart(
    bench: Bench, services: FakeServices
) -> None:
    services.get(f"{BASE}/v3/templates?generations=legacy%2Cdynamic", status=401)
    services.get(f"{BASE}/v3/templates?generations=legacy%2Cdynamic", status=403)
    services.get(f"{BASE}/v3/templates?generations=legacy%2Cdynamic", status=404)
    with pytest.raises(CredentialsRefused, match=r"settings .* by SMS.* and set EMAIL_API_KEY"):
        await a_client(bench).get("templates")
    with pytest.raises(PermissionMissing, match="read access to “templates”"):
        await a_client(bench).get("templates")
    with pytest.raises(ServiceRefused, match="no resource “templates”"):
        await a_client(bench).get("templates")


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_basic_names_two_factor_authentication(
    bench: Bench, services: FakeServices, status: int
) -> None:
    services.get(f"{BASE}/v3/templates?generations=legacy%2Cdynamic", status=status)
    with pytest.raises((CredentialsRefused, PermissionMissing), match="two-factor") as caught:
        await a_client(bench, "basic").get("templates")
    assert "EMAIL_AUTH=bearer" in caught.value.sentence
