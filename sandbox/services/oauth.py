"""The token endpoint for the inventory: `POST /oauth/token` (RFC 6749, sections 5 and 6)."""

from aiohttp import web

from sandbox.services.faults import Place
from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET, Issued
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.serve import STATE, Work, basic_of, json_answer, serve
from sandbox.services.state import ServicesState
from sandbox.services.strike import Answer

# The specification's "Endpoints", area B: what a listing requires.
LISTING_SCOPE = "ServiceInventory.settings.READ"
_NOT_STORED = {"Cache-Control": "no-store"}


async def issue_token(request: web.Request) -> web.StreamResponse:
    """`POST /oauth/token`. `grant_type` must be `refresh_token` or `authorization_code`."""
    state = request.app[STATE]
    form = {name: str(value) for name, value in (await request.post()).items()}
    basic = basic_of(request.headers.get("Authorization", ""))
    client = basic or (form.get("client_id", ""), form.get("client_secret", ""))
    work = Work(
        Place("oauth"),
        admit=lambda _: _refused_client(state, client),
        effect=lambda: _grant(state, form),
    )
    return await serve(request, work)


def _refused_client(state: ServicesState, client: tuple[str, str]) -> Answer | None:
    if client == (CLIENT_ID, CLIENT_SECRET):
        return None
    return _error(state, "invalid_client", 401)


def _grant(state: ServicesState, form: dict[str, str]) -> Answer:
    if form.get("grant_type") == "authorization_code" and "code" in form:
        exchanged = state.oauth.exchange(DATA_CENTERS, form["code"])
        if exchanged is None:
            return _error(state, "invalid_code")
        data_center, issued = exchanged
        return _tokens(issued, api_domain=f"https://www.zohoapis.{data_center}")
    if "grant_type" not in form or "refresh_token" not in form:
        return _error(state, "invalid_request")
    if form["grant_type"] != "refresh_token":
        return _error(state, "unsupported_grant_type")
    renewed = state.oauth.grant(DATA_CENTERS, form["refresh_token"])
    return _error(state, "invalid_grant") if renewed is None else _tokens(renewed)


def _tokens(issued: Issued, **more: str) -> Answer:
    body: dict[str, object] = {
        **more,
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "scope": LISTING_SCOPE,
    }
    if issued.refresh_token:
        body["refresh_token"] = issued.refresh_token
    return json_answer(body, headers=_NOT_STORED)


def _error(state: ServicesState, name: str, status: int = 400) -> Answer:
    seen = 200 if state.oauth.refuses_with_200 else status
    return json_answer({"error": name}, seen, _NOT_STORED)
