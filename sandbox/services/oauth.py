"""The token endpoint for the inventory: `POST /oauth/token` (RFC 6749, sections 5 and 6)."""

from aiohttp import web

from sandbox.services.faults import Place
from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.serve import STATE, Work, basic_of, json_answer, serve
from sandbox.services.state import ServicesState
from sandbox.services.strike import Answer

# The specification's "Endpoints", area B: what a listing requires.
LISTING_SCOPE = "ServiceInventory.settings.READ"
_NOT_STORED = {"Cache-Control": "no-store"}


async def issue_token(request: web.Request) -> web.StreamResponse:
    """`POST /oauth/token` with `grant_type=refresh_token`."""
    state = request.app[STATE]
    form = {name: str(value) for name, value in (await request.post()).items()}
    basic = basic_of(request.headers.get("Authorization", ""))
    client = basic or (form.get("client_id", ""), form.get("client_secret", ""))
    work = Work(
        Place("oauth"),
        admit=lambda _: _refused_client(client),
        effect=lambda: _grant(state, form),
    )
    return await serve(request, work)


def _refused_client(client: tuple[str, str]) -> Answer | None:
    if client == (CLIENT_ID, CLIENT_SECRET):
        return None
    return _error("invalid_client", 401)


def _grant(state: ServicesState, form: dict[str, str]) -> Answer:
    if "grant_type" not in form or "refresh_token" not in form:
        return _error("invalid_request")
    if form["grant_type"] != "refresh_token":
        return _error("unsupported_grant_type")
    issued = state.oauth.grant(DATA_CENTERS, form["refresh_token"])
    if issued is None:
        return _error("invalid_grant")
    body: dict[str, object] = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "scope": LISTING_SCOPE,
    }
    if issued.refresh_token:
        body["refresh_token"] = issued.refresh_token
    return json_answer(body, headers=_NOT_STORED)


def _error(name: str, status: int = 400) -> Answer:
    return json_answer({"error": name}, status, _NOT_STORED)
