"""Access tokens are renewed before they expire, and also when a service refuses them."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aioresponses import CallbackResult
from pydantic import SecretStr
from yarl import URL

from bot.organizations.client import DataCenterAccess, InventoryClient
from bot.organizations.rules import OrganizationKey
from bot.services.calls import CallCause
from bot.services.credentials import RENEWALS_AFTER_401, OAuthCredential
from bot.services.errors import (
    CredentialsRefused,
    ProviderThrottled,
    ResponseUnreadable,
    RotatingRefreshToken,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
)
from bot.settings.model import OAuthSettings
from tests.support.http import Bench, CompatibleResponse, FakeGuard, FakeServices, web_server

TOKEN_URL = "https://accounts.example.eu/oauth/v2/token"
ROOT = URL("https://inventory.example.eu/inventory/v1")
LISTING: dict[str, Any] = {"code": 0, "message": "success", "organizations": []}
EU = OrganizationKey("eu")


def a_credential(bench: Bench, url: str = TOKEN_URL) -> OAuthCredential:
    grant = OAuthSettings(
        client_id="cl1ent",
        client_secret=SecretStr("cl1ent-secret"),
        refresh_token=SecretStr("refresh-me"),
        token_url=url,
    )
    return OAuthCredential(bench.http, bench.clock, "eu", grant)


def a_client(bench: Bench, guard: FakeGuard) -> InventoryClient:
    access = DataCenterAccess(ROOT, a_credential(bench), "settings.READ")
    return InventoryClient(bench.http, guard.call, {"eu": access})


def renewals(services: FakeServices) -> int:
    return len(services.requests.get(("POST", URL(TOKEN_URL)), []))


def answers(services: FakeServices, *tokens: str, **more: object) -> None:
    for token in tokens:
        services.post(TOKEN_URL, payload={"access_token": token, **more})


async def header(credential: OAuthCredential) -> str:
    return (await credential.sign()).headers["Authorization"]


async def test_the_request_is_the_refresh_token_grant(bench: Bench) -> None:
    forms = []

    async def answer(request):
        forms.append(dict(await request.post()))
        return web.json_response({"access_token": "one", "token_type": "Bearer"})

    async with web_server(answer) as url:
        assert await header(a_credential(bench, url)) == "Bearer one"
    assert forms == [
        {
            "grant_type": "refresh_token",
            "refresh_token": "refresh-me",
            "client_id": "cl1ent",
            "client_secret": "cl1ent-secret",
        }
    ]


@pytest.mark.parametrize(
    ("expires_in", "good_until"),
    [(3600, 3540), ("3600", 3540), (40, 35), (0, 600), (None, 600), (3_600_000, 3540)],
)
async def test_a_token_is_renewed_before_it_expires(
    bench: Bench, services: FakeServices, expires_in: object, good_until: float
) -> None:
    lifetime = {} if expires_in is None else {"expires_in": expires_in}
    answers(services, "one", "two", **lifetime)
    credential = a_credential(bench)
    assert await header(credential) == "Bearer one"
    bench.clock.advance(good_until - 1)
    assert await header(credential) == "Bearer one"
    bench.clock.advance(1)
    assert await header(credential) == "Bearer two"


async def test_many_who_ask_at_once_cost_one_renewal(bench: Bench, services: FakeServices) -> None:
    answers(services, "one", "two", "three")
    credential = a_credential(bench)
    signed = await asyncio.gather(*(credential.sign() for _ in range(50)))
    assert renewals(services) == 1
    await asyncio.gather(*(credential.renewed(item) for item in signed))
    assert renewals(services) == 2


async def test_refused_token_is_renewed_once_with_another_grant(
    bench: Bench, services: FakeServices
) -> None:
    answers(services, "old", "new")
    address = ROOT / "organizations"
    services.get(address, status=401)
    services.get(address, payload=LISTING)
    guard = FakeGuard()
    assert await a_client(bench, guard).organizations(EU, CallCause("list")) == ()
    sent = [
        request.kwargs["headers"]["Authorization"] for request in services.requests["GET", address]
    ]
    assert sent == ["Bearer old", "Bearer new"]
    assert guard.events == [EU, "responded", EU, "responded", "passed"]


async def test_a_token_refused_again_is_an_error(bench: Bench, services: FakeServices) -> None:
    answers(services, "old", "new", "never")
    services.get(ROOT / "organizations", status=401, repeat=True)
    with pytest.raises(CredentialsRefused):
        await a_client(bench, FakeGuard()).organizations(EU, CallCause("list"))
    assert renewals(services) == 2


async def test_no_call_is_granted_while_there_is_no_token(
    bench: Bench, services: FakeServices
) -> None:
    services.post(TOKEN_URL, status=503)
    guard = FakeGuard()
    with pytest.raises(ServiceFailed, match=r"OAuth provider \(eu\)"):
        await a_client(bench, guard).organizations(EU, CallCause("list"))
    assert guard.events == []


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (400, {"error": "invalid_grant"}, CredentialsRefused, "refresh token"),
        (200, {"error": "invalid_code"}, CredentialsRefused, "refresh token"),
        (
            400,
            {"error": "invalid_grant", "error_description": "Revoked."},
            CredentialsRefused,
            "Revoked.",
        ),
        (403, {"error": "invalid_grant"}, CredentialsRefused, "refresh token"),
        (500, {"error": "invalid_grant"}, CredentialsRefused, "refresh token"),
        (503, {"error": "invalid_code"}, CredentialsRefused, "refresh token"),
        (404, {"error": "Invalid_Grant"}, CredentialsRefused, "refresh token"),
        (401, {"error": "invalid_client"}, CredentialsRefused, "client_secret"),
        (200, {"error": "invalid_client"}, CredentialsRefused, "or data center. Check that token_"),
        (200, {"error": "invalid_client_secret"}, CredentialsRefused, "The client_secret for eu"),
        (401, {}, CredentialsRefused, "rejected Gatehouse's credentials"),
        (400, {"error": "invalid_scope"}, ServiceRefused, "invalid_scope"),
        (200, {"error": "odd <!channel>"}, ServiceRefused, "odd"),
        (200, {}, ResponseUnreadable, "field “access_token”"),
        (200, [], ResponseUnreadable, "not the expected object"),
        (200, {"access_token": ""}, ResponseUnreadable, "field “access_token”"),
        (200, {"access_token": "a\r\nX: y"}, ResponseUnreadable, "field “access_token”"),
        (200, {"access_token": "a\n"}, ResponseUnreadable, "field “access_token”"),
        (200, {"access_token": "one", "expires_in": "soon"}, ResponseUnreadable, "“expires_in”"),
        (
            200,
            {"access_token": "one", "refresh_token": "next"},
            RotatingRefreshToken,
            "doesn't support",
        ),
    ],
)
async def test_each_way_to_fail_has_a_sentence_and_no_secret(
    bench: Bench,
    services: FakeServices,
    status: int,
    body: object,
    error: type[ServiceError],
    says: str,
) -> None:
    services.post(TOKEN_URL, status=status, payload=body)  # type: ignore[arg-type]
    with pytest.raises(error) as caught:
        await a_credential(bench).sign()
    assert says in caught.value.sentence
    assert "eu" in caught.value.sentence
    if error is CredentialsRefused:
        # The alert rule looks for this label with any status.
        assert [observed.label for observed in bench.observed] == ["401"]
    assert bench.observed[-1].label != "200"
    assert not any(
        secret in caught.value.sentence
        for secret in ("cl1ent-secret", "refresh-me", "next", "\n", "accounts.example")
    )


async def test_empty_fields_are_as_good_as_none(bench: Bench, services: FakeServices) -> None:
    empty = {"error": "", "error_description": "", "refresh_token": ""}
    services.post(TOKEN_URL, payload={"access_token": "one", **empty})
    assert (await a_credential(bench).sign()).token == "one"


async def test_a_failed_renewal_is_tried_again_by_the_next_who_asks(
    bench: Bench, services: FakeServices
) -> None:
    services.post(TOKEN_URL, status=500)
    answers(services, "one")
    credential = a_credential(bench)
    for _ in range(3):
        with pytest.raises(ServiceFailed):
            await credential.sign()
    assert renewals(services) == 1
    bench.clock.advance(1)
    assert await header(credential) == "Bearer one"


async def test_good_token_is_used_when_no_new_one_can_be_had(
    bench: Bench, services: FakeServices
) -> None:
    answers(services, "one", expires_in=3600)
    services.post(TOKEN_URL, status=503)
    services.post(TOKEN_URL, status=503)
    answers(services, "two", expires_in=3600)
    credential = a_credential(bench)
    assert await header(credential) == "Bearer one"
    bench.clock.advance(3540)
    both = await asyncio.gather(header(credential), header(credential))
    assert both == ["Bearer one", "Bearer one"]
    bench.clock.advance(9)
    assert await header(credential) == "Bearer one"
    assert renewals(services) == 2
    bench.clock.advance(1)
    assert await header(credential) == "Bearer one"
    assert renewals(services) == 3
    bench.clock.advance(50)
    assert await header(credential) == "Bearer two"


async def test_a_token_that_has_ended_or_can_never_be_renewed_is_not_used(
    bench: Bench, services: FakeServices
) -> None:
    answers(services, "one", expires_in=3600)
    services.post(TOKEN_URL, status=400, payload={"error": "invalid_grant"})
    services.post(TOKEN_URL, status=503)
    credential = a_credential(bench)
    await credential.sign()
    bench.clock.advance(3540)
    with pytest.raises(CredentialsRefused):
        await credential.sign()
    bench.clock.advance(60)
    with pytest.raises(ServiceFailed):
        await credential.sign()


async def test_a_token_that_is_given_out_again_stays_hidden(
    bench: Bench, services: FakeServices
) -> None:
    answers(services, "token-1", "token-1", "token-1", "token-1", expires_in=60)
    credential = a_credential(bench)
    for _ in range(4):
        await credential.sign()
        bench.clock.advance(100)
    assert bench.redactor.clean("token-1") == "[secret]"


TOO_MANY = "You have made too many requests continuously. Please try again after some time."


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": "Access Denied", "error_description": TOO_MANY}),
        (200, {"error": "Access Denied", "error_description": TOO_MANY}),
        (200, {"error": "Access Denied"}),
        (400, {"error": "slow_down"}),
        (503, {"error": "Access Denied", "error_description": TOO_MANY}),
        (429, {}),
    ],
)
async def test_a_throttled_provider_is_left_in_peace_for_longer_each_time(
    bench: Bench, services: FakeServices, status: int, body: dict[str, str]
) -> None:
    services.post(TOKEN_URL, status=status, payload=body, repeat=True)  # type: ignore[arg-type]
    credential = a_credential(bench)
    for _ in range(3600):
        with pytest.raises(
            ProviderThrottled, match=r"OAuth provider \(eu\) .* again at \d\d:\d\d UTC"
        ):
            await credential.sign()
        bench.clock.advance(1)
    # After 10, 20, 40, … 640, 900, and 900 s.
    assert renewals(services) == 10
    assert {observed.label for observed in bench.observed} == {"429"}


async def test_an_error_that_is_told_again_keeps_no_caller_alive(
    bench: Bench, services: FakeServices
) -> None:
    services.post(TOKEN_URL, status=429)
    credential = a_credential(bench)
    lengths = set()
    for _ in range(20):
        with pytest.raises(ProviderThrottled) as caught:
            await credential.sign()
        lengths.add(len(caught.traceback))
    assert max(lengths) < 20


async def test_the_time_of_the_next_try_is_never_before_retry_after(
    bench: Bench, services: FakeServices
) -> None:
    services.post(TOKEN_URL, status=429, headers={"Retry-After": "600"})
    answers(services, "one")
    credential = a_credential(bench)
    # The clock starts at 9:00.
    with pytest.raises(ProviderThrottled, match="again at 09:10 UTC"):
        await credential.sign()
    bench.clock.advance(599)
    with pytest.raises(ProviderThrottled, match="again at 09:10 UTC"):
        await credential.sign()
    bench.clock.advance(1)
    assert await header(credential) == "Bearer one"


def _answer(status: int, **payload: object) -> CallbackResult:
    return CallbackResult(status=status, payload=payload, response_class=CompatibleResponse)


class FakeProvider:
    """Issues a limited number of tokens in ten minutes.

    `most` is the maximum number of tokens. `life` is how many seconds a token is valid.
    """

    def __init__(self, bench: Bench, life: float, most: float) -> None:
        self.bench = bench
        self.life = life
        self.most = most
        self.given: list[float] = []

    def give(self, _url: URL, **_request: object) -> CallbackResult:
        now = self.bench.clock.monotonic()
        if sum(now - at < 600 for at in self.given) >= self.most:
            return _answer(400, error="Access Denied")
        self.given.append(now)
        return _answer(200, access_token=f"token-{len(self.given)}", expires_in=self.life)

    def accepts(self, authorization: str) -> bool:
        number = int(authorization.rpartition("-")[2])
        return self.bench.clock.monotonic() - self.given[number - 1] < self.life


@pytest.mark.parametrize(("life", "most"), [(3600, 10), (40, float("inf"))])
async def test_calls_that_are_always_refused_take_no_token_from_others(
    bench: Bench, services: FakeServices, life: float, most: float
) -> None:
    provider = FakeProvider(bench, life, most)
    services.post(TOKEN_URL, callback=provider.give, repeat=True)
    credential = a_credential(bench)
    for _ in range(600):
        refused = await credential.sign()
        await credential.renewed(refused)
        assert provider.accepts(await header(credential))
        bench.clock.advance(1)
    by_themselves = 600 / life * 8 / 7
    assert len(provider.given) <= 1 + by_themselves + RENEWALS_AFTER_401


async def test_a_revoked_token_is_renewed_after_one_401(
    bench: Bench, services: FakeServices
) -> None:
    answers(services, "one", "two", "three", expires_in=3600)
    credential = a_credential(bench)
    one = await credential.sign()
    two = await credential.renewed(one)
    assert two is not None
    assert two.token == "two"
    assert await credential.renewed(one) is two
    assert await credential.sign() is two
