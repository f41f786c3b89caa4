"""Simulates the inventory service (area B in the specification).

The service limits the number of calls for each organization.
"""

from aiohttp import web

from sandbox.services.calls import Call
from sandbox.services.faults import Place
from sandbox.services.limits import OrganizationAt
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.serve import STATE, Work, json_answer, serve, token_of
from sandbox.services.state import ServicesState, inventory_token
from sandbox.services.strike import Answer

LISTING_PATH = "/{data_center}/inventory/v1/organizations"

# The specification doesn't define these codes. A caller may only rely on a code other than 0.
_BAD_CREDENTIAL, _UNKNOWN_ADDRESS, _UNKNOWN_ORGANIZATION = 57, 5, 6041


async def list_organizations(request: web.Request) -> web.StreamResponse:
    """`GET /{data center}/inventory/v1/organizations`."""
    data_center = request.match_info["data_center"]
    state = request.app[STATE]
    if data_center not in DATA_CENTERS:
        return _refusal(404, _UNKNOWN_ADDRESS, "There is nothing at this address.").response()
    at = (data_center, request.query.get("organization_id") or None)
    work = Work(
        Place("inventory", data_center, at[1]),
        admit=lambda call: _admit(state, request, at, call),
        effect=lambda: _listing(state, at),
        leave=lambda: state.limits.leave(at),
    )
    return await serve(request, work)


def _admit(
    state: ServicesState, request: web.Request, at: OrganizationAt, call: Call
) -> Answer | None:
    data_center, organization_id = at
    if not _has_credential(state, request, data_center):
        return _refusal(401, _BAD_CREDENTIAL, "You are not authorized to do this.")
    if organization_id and not state.data_centers[data_center].has(organization_id):
        return _refusal(
            400, _UNKNOWN_ORGANIZATION, f"There is no organization {organization_id} here."
        )
    refusal = state.limits.enter(at)
    usage = state.limits.usage[at]
    call.counted_at, call.in_flight = state.now(), usage.in_flight
    if refusal is None:
        return None
    call.code = refusal.code
    return _refusal(429, refusal.code, refusal.message, state.limits.day_headers(at))


def _listing(state: ServicesState, at: OrganizationAt) -> Answer:
    return Answer(200, state.data_centers[at[0]].listing, state.limits.day_headers(at))


def _has_credential(state: ServicesState, request: web.Request, data_center: str) -> bool:
    header = request.headers.get("Authorization", "")
    given = {request.query.get("authtoken", ""), token_of(header)}
    if state.inventory_scheme is not None:
        given = {token_of(header)} if header.startswith(f"{state.inventory_scheme} ") else set()
    return any(
        token == inventory_token(data_center) or state.oauth.accepts(data_center, token)
        for token in given
    )


def _refusal(status: int, code: int, message: str, headers: dict[str, str] | None = None) -> Answer:
    return json_answer({"code": code, "message": message}, status, headers)
