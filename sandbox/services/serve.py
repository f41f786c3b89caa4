"""Handles a call: records it, decides whether to admit it, applies faults, and responds."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from sandbox.services.calls import Call
from sandbox.services.faults import ADMITTED, DELAYS, ON_THE_WAY, FaultKind, Place
from sandbox.services.state import ServicesState
from sandbox.services.strike import Answer, Strike, strike

STATE = web.AppKey("services_state", ServicesState)


def json_answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A JSON response."""
    return Answer(status, json.dumps(body, ensure_ascii=False).encode(), headers or {})


@dataclass(frozen=True)
class Work:
    """The steps that a service takes to handle a call.

    `admit` returns a refusal if the call is not allowed, and None otherwise. `effect` carries out
    the call and returns the response. `leave` is called once at the end of each admitted call.
    """

    place: Place
    admit: Callable[[Call], Answer | None]
    effect: Callable[[], Answer]
    leave: Callable[[], None] = field(default=lambda: None)


async def serve(request: web.Request, work: Work) -> web.StreamResponse:
    """Respond to a call, and apply any faults that affect it."""
    state = request.app[STATE]
    call = state.log.arrive(work.place, request.method, request.path)
    response: web.StreamResponse | None = None
    try:
        response = await _answer(request, state, work, call)
        return response
    finally:
        state.log.finish(call, _status_seen(request, response))


async def _answer(
    request: web.Request, state: ServicesState, work: Work, call: Call
) -> web.StreamResponse:
    for fault in state.faults.take(work.place, request.method, ON_THE_WAY):
        await state.sleep(fault.seconds)
    refusal = work.admit(call)
    if refusal:
        return refusal.response()
    try:
        return await _disturbed(request, state, work)
    finally:
        # Before the response is sent, so that the client's next call doesn't find it in flight.
        work.leave()


async def _disturbed(request: web.Request, state: ServicesState, work: Work) -> web.StreamResponse:
    answer: Answer | None = None
    if state.latency_seconds:
        await state.sleep(state.latency_seconds)
    for fault in state.faults.take(work.place, request.method, ADMITTED):
        if fault.after_work and answer is None:
            answer = work.effect()
        if fault.kind is FaultKind.SLOW:
            await state.sleep(fault.seconds)
        elif fault.kind is FaultKind.HOLD:
            await fault.stand_still()
        elif fault.kind not in DELAYS:
            return await strike(Strike(request, fault, answer, state.sleep))
    return (answer or work.effect()).response()


def _status_seen(request: web.Request, response: web.StreamResponse | None) -> int | None:
    if response is None or request.transport is None or request.transport.is_closing():
        return None
    return response.status


def token_of(authorization: str) -> str:
    """Return the token from an `Authorization: <scheme> <token>` header, or "" if there is none."""
    _, _, token = authorization.strip().partition(" ")
    return token.strip()


def basic_of(authorization: str) -> tuple[str, str] | None:
    """Return the user name and password from an `Authorization: Basic` header (RFC 7617)."""
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, colon, password = decoded.partition(":")
    return (name, password) if colon else None
