"""Simulates the email service (area A in the specification).

Each call needs an API key that has permission for the requested resource.
"""

from typing import Any

from aiohttp import web

from sandbox.services.faults import Place
from sandbox.services.serve import STATE, Work, basic_of, json_answer, serve, token_of
from sandbox.services.state import EMAIL_KEY, LIMITED_EMAIL_KEY
from sandbox.services.strike import Answer

RESOURCE_PATH = "/v3/{resource:.+}"

_BODIES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "templates": {
        "result": [
            {"id": "d-0a1b2c3d4e5f", "name": "Welcome & first steps", "generation": "dynamic"},
            {"id": "d-1b2c3d4e5f60", "name": "Password reset", "generation": "dynamic"},
            {"id": "d-2c3d4e5f6071", "name": "Invoice <overdue>", "generation": "legacy"},
        ]
    },
    "resource": {"result": []},
}


async def read_resource(request: web.Request) -> web.StreamResponse:
    """`GET /v3/{resource}`."""
    state, resource = request.app[STATE], request.match_info["resource"]
    authorization = request.headers.get("Authorization", "")
    generations = request.query.get("generations", state.default_generations)
    work = Work(
        Place("email"),
        admit=lambda _: _refusal_of(authorization, resource),
        effect=lambda: _listed(resource, generations),
    )
    return await serve(request, work)


def _listed(resource: str, generations: str) -> Answer:
    """Return a response that contains only templates of the given generations."""
    rows = _BODIES[resource]["result"]
    shown = [row for row in rows if row.get("generation", generations) in generations.split(",")]
    return json_answer({"result": shown})


def _refusal_of(authorization: str, resource: str) -> Answer | None:
    key = _key(authorization)
    if key not in (EMAIL_KEY, LIMITED_EMAIL_KEY):
        return _refusal(401, "The provided authorization grant is invalid, expired or revoked.")
    if resource not in _BODIES:
        return _refusal(404, "There is no such resource.")
    if key == LIMITED_EMAIL_KEY and resource == "templates":
        return _refusal(403, "This key has no permission for this resource.")
    return None


def _key(authorization: str) -> str:
    """Return the API key from a Bearer token or from Basic authentication."""
    basic = basic_of(authorization)
    if basic:
        return basic[1] if basic[0] == "apikey" else ""
    return token_of(authorization) if authorization.lower().startswith("bearer ") else ""


def _refusal(status: int, message: str) -> Answer:
    return json_answer({"errors": [{"message": message, "field": None, "help": None}]}, status)
