"""`/_control`: make this Slack's calls fail, from another process.

POST faults         {"method", "kind", "times"?, "retry_after"?, "error"?, "status"?}
POST faults/lift    {}: everything works again, and what is held goes on

`kind` is one of `ratelimit`, `error`, `status`, `html`, `hang`, `drop`, `cut`; see
`sandbox.slack.faults.Faults`. `times` is 1 when left out, null for every call until lifted.
"""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from sandbox.slack.faults import Faults
from sandbox.slack.messages import Json
from sandbox.slack.workspace import Workspace


def add_control(app: web.Application, workspace: Workspace) -> None:
    """Add what goes wrong."""

    async def disturb(request: web.Request) -> web.Response:
        try:
            set_fault(workspace.faults, await request.json())
        except (KeyError, TypeError, ValueError) as error:
            raise web.HTTPBadRequest(text=f"{type(error).__name__}: {error}") from error
        return web.json_response({})

    async def lift(_request: web.Request) -> web.Response:
        workspace.faults.clear()
        return web.json_response({})

    app.router.add_post("/_control/faults", disturb)
    app.router.add_post("/_control/faults/lift", lift)


def set_fault(faults: Faults, body: Json) -> None:
    """Set one fault.

    Raises:
        KeyError: a field is missing, or there is no such kind.
        ValueError: a number is not one.
    """
    times: int | None = body.get("times", 1)
    kinds: dict[str, Callable[..., None]] = {
        "ratelimit": faults.ratelimit,
        "error": faults.error,
        "status": faults.status,
        "html": faults.html,
        "hang": faults.hang,
        "drop": faults.drop,
        "cut": faults.cut,
    }
    more: dict[str, Any] = {}
    if body["kind"] == "ratelimit":
        more["retry_after"] = int(body.get("retry_after", 1))
    elif body["kind"] == "error":
        more["name"] = str(body["error"])
    elif body["kind"] == "status":
        more["status"] = int(body.get("status", 500))
    kinds[body["kind"]](body["method"], times=times, **more)
