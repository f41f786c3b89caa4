"""Simulates the flow service (area C in the specification).

Each update replaces a flow's whole list of test users.
"""

import re
from collections.abc import Callable

from aiohttp import web

from sandbox.services.faults import Place
from sandbox.services.serve import STATE, Work, basic_of, json_answer, serve
from sandbox.services.state import FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN, Flow, ServicesState
from sandbox.services.strike import Answer

TEST_USERS_PATH = "/v2/Flows/{sid}/TestUsers"
FLOWS_PATH = "/v2/Flows"
MAX_IDENTITY_BYTES = 300

_SID = re.compile(r"FW[0-9a-fA-F]{32}")
_FORM = "application/x-www-form-urlencoded"


async def list_flows(request: web.Request) -> web.StreamResponse:
    """`GET /v2/Flows`. Twilio Studio has this endpoint, but the specification doesn't list it."""
    state = request.app[STATE]

    def effect() -> Answer:
        flows = [
            {"sid": flow.sid, "friendly_name": flow.name, "status": "published"}
            for flow in state.flows.values()
        ]
        return json_answer({"flows": flows, "meta": {"key": "flows", "next_page_url": None}})

    return await serve(
        request, Work(Place("flow"), admit=lambda _: _refused_account(request), effect=effect)
    )


async def read_test_users(request: web.Request) -> web.StreamResponse:
    """`GET /v2/Flows/{Sid}/TestUsers`."""
    state, sid = request.app[STATE], request.match_info["sid"]
    return await serve(request, _work(request, sid, lambda: _shown(request, state.flows[sid])))


async def replace_test_users(request: web.Request) -> web.StreamResponse:
    """`POST /v2/Flows/{Sid}/TestUsers` replaces the stored list.

    The form has one field for each identity. A single empty value means an empty list.
    """
    state, sid = request.app[STATE], request.match_info["sid"]
    identities = await _identities(request)

    def effect() -> Answer:
        if isinstance(identities, Answer):
            return identities
        return _store(request, state, sid, identities)

    return await serve(request, _work(request, sid, effect))


def _work(request: web.Request, sid: str, effect: Callable[[], Answer]) -> Work:
    state = request.app[STATE]
    return Work(
        Place("flow", flow_sid=sid),
        admit=lambda _: _refusal_of(request, state, sid),
        effect=effect,
    )


def _refused_account(request: web.Request) -> Answer | None:
    if basic_of(request.headers.get("Authorization", "")) == (FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN):
        return None
    return _refusal(401, "Authentication failed.")


def _refusal_of(request: web.Request, state: ServicesState, sid: str) -> Answer | None:
    refused = _refused_account(request)
    if refused:
        return refused
    if not _SID.fullmatch(sid):
        return _refusal(400, "The flow SID is FW and 32 hexadecimal digits.")
    if sid not in state.flows:
        return _refusal(404, f"There is no flow {sid}.")
    return None


async def _identities(request: web.Request) -> list[str] | Answer:
    if request.content_type != _FORM:
        return _refusal(415, f"The body must be {_FORM}.")
    form, fields = await request.post(), request.app[STATE].flow_fields
    given = [str(value) for field in fields for value in form.getall(field, [])]
    if not given:
        return _refusal(400, f"The field {fields[0]} is required.")
    if given == [""]:
        return []
    if "" in given:
        return _refusal(400, "An identity is empty.")
    if any(len(identity.encode()) > MAX_IDENTITY_BYTES for identity in given):
        return _refusal(400, f"An identity is longer than {MAX_IDENTITY_BYTES} bytes.")
    return given


def _store(request: web.Request, state: ServicesState, sid: str, identities: list[str]) -> Answer:
    flow = state.flows[sid]
    flow.identities = list(identities)
    flow.history.append(list(identities))
    state.changed()
    return _shown(request, flow)


def _shown(request: web.Request, flow: Flow) -> Answer:
    url = str(request.url.with_query(None))
    return json_answer({"sid": flow.sid, "test_users": flow.identities, "url": url})


def _refusal(status: int, message: str) -> Answer:
    return json_answer({"status": status, "message": message}, status)
