"""The clients against the stand-in services, over real HTTP."""

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr
from yarl import URL

from bot.clients.credentials import Credential, HeaderToken, QueryToken
from bot.clients.email import EmailClient
from bot.clients.flow import FlowClient
from bot.clients.inventory import DataCenterAccess, InventoryClient
from bot.clients.oauth import OAuthCredential, OAuthGrant
from bot.model.organizations.data_centers import DATA_CENTERS
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import PROBE, CallCause
from bot.service_errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    RotatingRefreshToken,
    ServiceFailed,
    ServiceRefused,
)
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from tests.support.guard import FakeGuard
from tests.support.http import Bench, open_bench

WELCOME = "FW00000000000000000000000000000001"
CAUSE = CallCause("list")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as bench:
        yield bench


@pytest.fixture
async def services() -> AsyncIterator[RunningServices]:
    async with running_services(ServicesState()) as services:
        yield services


def inventory(services: RunningServices, bench: Bench, credential: Credential | None = None):
    access = {
        name: DataCenterAccess(
            URL(f"{services.url}/{name}/inventory/v1"),
            credential or QueryToken(SecretStr(f"demo-{name}")),
        )
        for name in DATA_CENTERS
    }
    return InventoryClient(bench.http, FakeGuard(), access)


@pytest.mark.parametrize("data_center", DATA_CENTERS)
async def test_every_data_center_is_listed_with_and_without_a_name(
    services: RunningServices, bench: Bench, data_center: str
) -> None:
    client = inventory(services, bench)
    first = await client.organizations(OrganizationKey(data_center), CAUSE)
    assert first
    named = OrganizationKey(data_center, first[0].organization_id)
    assert await client.organizations(named, CAUSE) == first


async def test_both_forms_of_the_credential_are_taken_and_a_wrong_one_is_not(
    services: RunningServices, bench: Bench
) -> None:
    good = inventory(services, bench, HeaderToken(SecretStr("demo-eu")))
    assert await good.organizations(OrganizationKey("eu"), CAUSE)
    bad = inventory(services, bench, HeaderToken(SecretStr("demo-com")))
    with pytest.raises(CredentialsRefused):
        await bad.organizations(OrganizationKey("eu"), CAUSE)


async def test_the_hundred_and_first_call_of_a_minute_is_told_as_44(
    services: RunningServices, bench: Bench
) -> None:
    client = inventory(services, bench)
    first, *_ = await client.organizations(OrganizationKey("eu"), CAUSE)
    key = OrganizationKey("eu", first.organization_id)
    for _ in range(100):
        await client.organizations(key, CAUSE)
    with pytest.raises(RateLimited) as caught:
        await client.organizations(key, CAUSE)
    assert caught.value.code == 44
    assert caught.value.message


@pytest.mark.parametrize(
    ("cause", "calls"),
    [(CAUSE, 3), (CallCause("watch", background=True), 1), (CallCause(PROBE), 1)],
)
async def test_a_service_that_is_down_is_asked_three_times_for_people_and_else_once(
    services: RunningServices, bench: Bench, cause: CallCause, calls: int
) -> None:
    services.state.faults.add(Fault(FaultKind.STATUS, "inventory", status=503))
    with pytest.raises(ServiceFailed):
        await inventory(services, bench).organizations(OrganizationKey("eu"), cause)
    assert len(services.state.calls) == calls


async def test_a_list_is_replaced_emptied_and_read_back(
    services: RunningServices, bench: Bench
) -> None:
    account, token = "AC00000000000000000000000000000001", SecretStr("demo-flow-token")
    client = FlowClient(bench.http, URL(services.url), account, token)
    people = ["whatsapp:+15550001111", "zoë & 李, x"]
    assert await client.replace(WELCOME, people) == people
    assert await client.read(WELCOME) == people
    assert await client.replace(WELCOME, []) == []
    assert await client.read(WELCOME) == []
    with pytest.raises(ServiceRefused):
        await client.replace(WELCOME, ["x" * 301])


@pytest.mark.parametrize("auth", ["bearer", "basic"])
async def test_the_email_key_works_lacks_a_permission_or_is_wrong(
    services: RunningServices, bench: Bench, auth
) -> None:
    def client(key: str) -> EmailClient:
        return EmailClient(bench.http, URL(services.url), SecretStr(key), auth)

    assert (await client("SG.demo-key").templates()).count
    await client("SG.demo-key").check("resource")
    with pytest.raises(PermissionMissing):
        await client("SG.limited-key").check("templates")
    with pytest.raises(CredentialsRefused):
        await client("SG.nobody").check("templates")


def renewing(services: RunningServices, bench: Bench, *, refresh: str = "demo-refresh-eu"):
    """An inventory client whose `eu` has OAuth at the stand-in's token address."""
    grant = OAuthGrant(
        "demo-client", SecretStr("demo-client-secret"), SecretStr(refresh), URL(services.token_url)
    )
    credential = OAuthCredential(bench.http, bench.clock, "eu", grant)
    access = DataCenterAccess(URL(services.inventory_url("eu")), credential)
    return InventoryClient(bench.http, FakeGuard(), {"eu": access})


async def test_one_access_token_serves_until_it_is_near_its_end(
    services: RunningServices, bench: Bench
) -> None:
    client, issuer = renewing(services, bench), services.state.oauth
    for _ in range(3):
        assert await client.organizations(OrganizationKey("eu"), CAUSE)
    assert issuer.granted == 1
    bench.clock.elapsed = issuer.lifetime_seconds - 30
    assert await client.organizations(OrganizationKey("eu"), CAUSE)
    assert issuer.granted == 2


async def test_a_revoked_access_token_is_replaced_within_the_call(
    services: RunningServices, bench: Bench
) -> None:
    client = renewing(services, bench)
    await client.organizations(OrganizationKey("eu"), CAUSE)
    services.state.oauth.revoke_access()
    assert await client.organizations(OrganizationKey("eu"), CAUSE)
    assert services.state.oauth.granted == 2


async def test_a_revoked_refresh_token_is_told_as_such(
    services: RunningServices, bench: Bench
) -> None:
    services.state.oauth.revoke_refresh("demo-refresh-eu")
    with pytest.raises(CredentialsRefused, match="refresh token"):
        await renewing(services, bench).organizations(OrganizationKey("eu"), CAUSE)


async def test_rotating_refresh_tokens_are_told_as_not_supported(
    services: RunningServices, bench: Bench
) -> None:
    services.state.oauth.rotates = True
    with pytest.raises(RotatingRefreshToken, match="not supported"):
        await renewing(services, bench).organizations(OrganizationKey("eu"), CAUSE)
