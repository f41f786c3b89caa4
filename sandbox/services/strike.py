"""Applies a fault to a response. A fault can replace, slow down or drop the response."""

import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import web

from sandbox.services.faults import Fault, FaultKind

_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """A complete response from a service."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = _JSON

    def response(self) -> web.Response:
        """Return the answer as an aiohttp response."""
        headers = {"Content-Type": self.content_type, **self.headers}
        return web.Response(status=self.status, body=self.body, headers=headers)


@dataclass(frozen=True)
class Strike:
    """A call and the fault that affects it. `answer` is the service's normal response, if any."""

    request: web.Request
    fault: Fault
    answer: Answer | None
    sleep: Callable[[float], Awaitable[object]]

    @property
    def body(self) -> bytes:
        """The body of the service's normal response."""
        return self.answer.body if self.answer else b"{}"


async def strike(call: Strike) -> web.StreamResponse:
    """Apply the fault and return the resulting response."""
    return await _STRIKES[call.fault.kind](call)


async def _hang(call: Strike) -> web.StreamResponse:
    await call.fault.stand_still()
    return await _cut(call)


async def _reset(call: Strike) -> web.StreamResponse:
    # A socket closed with a linger of zero seconds sends RST instead of FIN (socket(7)).
    transport = call.request.transport
    if transport is not None:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return await _cut(call)


async def _cut(call: Strike) -> web.StreamResponse:
    if call.request.transport is not None:
        call.request.transport.abort()
    return web.Response()


async def _status(call: Strike) -> web.StreamResponse:
    body = json.dumps({"code": call.fault.code, "message": call.fault.message}).encode()
    return Answer(call.fault.status, body).response()


async def _html(_: Strike) -> web.StreamResponse:
    page = b"<!DOCTYPE html><html><body><h1>Be right back</h1></body></html>"
    return Answer(200, page, content_type="text/html; charset=utf-8").response()


async def _truncated(call: Strike) -> web.StreamResponse:
    return Answer(200, call.body[: len(call.body) // 2]).response()


async def _wrong_types(call: Strike) -> web.StreamResponse:
    said = json.loads(call.body)
    wrong = {name: _of_another_type(value) for name, value in said.items()}
    return Answer(200, json.dumps(wrong).encode()).response()


def _of_another_type(value: object) -> object:
    """Change the type of a value, unless the value is 0, because the code 0 means success."""
    if value == 0:
        return 0
    if isinstance(value, list):
        return [{"organization_id": 7, "name": None, "is_org_active": "perhaps"}, 42]
    return {"not": "expected"}


async def _code(call: Strike) -> web.StreamResponse:
    body = json.dumps({"code": call.fault.code, "message": call.fault.message}).encode()
    return Answer(200, body).response()


async def _redirect(call: Strike) -> web.StreamResponse:
    location = call.fault.location or f"http://127.0.0.1:1{call.request.path}"
    return Answer(302, b"", {"Location": location}).response()


async def _drip(call: Strike) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": _JSON})
    response.content_length = len(call.body)
    # The client may close the connection before the end of the body.
    with suppress(ConnectionError):
        await response.prepare(call.request)
        for number in range(len(call.body)):
            await response.write(call.body[number : number + 1])
            await call.sleep(call.fault.seconds or 1.0)
        await response.write_eof()
    return response


async def _other_list(call: Strike) -> web.StreamResponse:
    said = json.loads(call.body)
    said["test_users"] = list(call.fault.identities)
    return Answer(200, json.dumps(said).encode()).response()


_STRIKES: dict[FaultKind, Callable[[Strike], Awaitable[web.StreamResponse]]] = {
    FaultKind.HANG: _hang,
    FaultKind.RESET: _reset,
    FaultKind.CUT: _cut,
    FaultKind.STATUS: _status,
    FaultKind.HTML: _html,
    FaultKind.TRUNCATED: _truncated,
    FaultKind.WRONG_TYPES: _wrong_types,
    FaultKind.CODE: _code,
    FaultKind.REDIRECT: _redirect,
    FaultKind.DRIP: _drip,
    FaultKind.OTHER_LIST: _other_list,
}
