"""`/_control`: disturb the services and look at them over HTTP, from this machine only.

GET  state          organizations with their use, flows, faults, tokens
GET  calls?last=50  the last calls, newest last
POST block          {"data_center", "organization_id"?, "code": 44|45|1070, "seconds"?}
POST lift           {"data_center", "organization_id"?}
POST plan           {"data_center", "organization_id"?, "plan"}
POST limits         any field of `LimitRules`; the windows as {"minute": {"kind", "phase_seconds"}}
POST faults         the fields of `Fault`; answers {"fault_id"}
POST faults/lift    {"fault_id"?, "service"?, "data_center"?, "flow_sid"?}; {} lifts all
POST flows/{sid}    {"identities": […]}: edit a list behind the bot's back
POST organizations  {"data_center", "count", "name_length"?}: so many, instead of the first ones
POST oauth          {"rotates"?, "lifetime_seconds"?, "revoke_access"?: true}
"""

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields, replace
from typing import Any

from aiohttp import web

from sandbox.services import report
from sandbox.services.faults import SERVICES, Fault, FaultKind
from sandbox.services.limits import PLANS, LimitRules, OrganizationAt, Window
from sandbox.services.organizations import many_organizations
from sandbox.services.serve import STATE
from sandbox.services.state import ServicesState

Body = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let nobody but this machine control the services; a page elsewhere cannot either.

    A browser sends a JSON body to another origin only after asking, which we never allow.
    """
    if request.path.startswith("/_control"):
        if not _is_loopback(request.remote or "") or not _is_loopback(request.url.host or ""):
            raise web.HTTPForbidden(text="Only this machine controls the services.")
        if request.method == "POST" and request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="The body is to be JSON.")
    return await handler(request)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def add_control(app: web.Application) -> None:
    """Add every address of the table above."""
    app.router.add_get("/_control/state", _show_state)
    app.router.add_get("/_control/calls", _show_calls)
    for name, change in _CHANGES.items():
        app.router.add_post(f"/_control/{name}", _changing(change))


async def _show_state(request: web.Request) -> web.Response:
    return web.json_response(report.state(request.app[STATE]))


async def _show_calls(request: web.Request) -> web.Response:
    last = int(request.query.get("last", "50"))
    calls = request.app[STATE].calls[-last:] if last > 0 else []
    return web.json_response({"calls": [asdict(call) for call in calls]})


def _changing(change: Callable[[ServicesState, Body], object]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            body = {**await request.json(), **request.match_info}
            said = change(request.app[STATE], body)
        except (ValueError, TypeError, KeyError) as error:
            raise web.HTTPBadRequest(text=f"{type(error).__name__}: {error}") from error
        return web.json_response(said or {})

    return handle


def _organization(state: ServicesState, body: Body) -> OrganizationAt:
    data_center, organization_id = body["data_center"], body.get("organization_id")
    if organization_id and not state.data_centers[data_center].has(organization_id):
        raise ValueError(f"{data_center} has no organization {organization_id}")
    return state.data_centers[data_center].suffix, organization_id


def _block(state: ServicesState, body: Body) -> None:
    code = body["code"]
    if code not in (44, 45, 1070):
        raise ValueError("code is 44, 45 or 1070")
    state.limits.block(_organization(state, body), code, body.get("seconds"))


def _lift(state: ServicesState, body: Body) -> None:
    state.limits.lift(_organization(state, body))


def _plan(state: ServicesState, body: Body) -> None:
    if body["plan"] not in PLANS:
        raise ValueError(f"plan is one of {', '.join(PLANS)}")
    state.limits.plans[_organization(state, body)] = body["plan"]


def _limits(state: ServicesState, body: Body) -> None:
    rules, known = state.limits.rules, _known(LimitRules, body)
    windows: Body = {
        name: _window(getattr(rules, name), known[name])
        for name in ("minute", "day")
        if name in known
    }
    changes: Body = {**known, **windows}
    state.limits.rules = replace(rules, **changes)


def _window(window: Window, body: Body) -> Window:
    if body.get("kind", window.kind) not in ("fixed", "sliding"):
        raise ValueError("kind is fixed or sliding")
    return replace(window, **body)


def _fault(state: ServicesState, body: Body) -> Body:
    known = _known(Fault, body)
    if known["service"] not in SERVICES:
        raise ValueError(f"service is one of {', '.join(SERVICES)}")
    known["kind"] = FaultKind(known["kind"])
    known["identities"] = tuple(known.get("identities", ()))
    return {"fault_id": state.faults.add(Fault(**known)).fault_id}


def _lift_faults(state: ServicesState, body: Body) -> Body:
    where = {name: body.get(name) for name in ("service", "data_center", "flow_sid")}
    return {"lifted": state.faults.lift(body.get("fault_id"), **where)}


def _edit_flow(state: ServicesState, body: Body) -> None:
    state.edit_flow(body["sid"], [str(identity) for identity in body["identities"]])


def _organizations(state: ServicesState, body: Body) -> None:
    data_center = state.data_centers[body["data_center"]].suffix
    many = many_organizations(data_center, body["count"], body.get("name_length", 300))
    state.set_organizations(data_center, many)


def _oauth(state: ServicesState, body: Body) -> None:
    state.oauth.rotates = bool(body.get("rotates", state.oauth.rotates))
    state.oauth.lifetime_seconds = int(body.get("lifetime_seconds", state.oauth.lifetime_seconds))
    if body.get("revoke_access"):
        state.oauth.revoke_access()


def _known(form: type[Fault | LimitRules], body: Body) -> Body:
    names = {field.name for field in fields(form) if field.init} - {"fault_id"}
    unknown = body.keys() - names
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return body


_CHANGES: dict[str, Callable[[ServicesState, Body], object]] = {
    "block": _block,
    "lift": _lift,
    "plan": _plan,
    "limits": _limits,
    "faults": _fault,
    "faults/lift": _lift_faults,
    "flows/{sid}": _edit_flow,
    "organizations": _organizations,
    "oauth": _oauth,
}
