"""Simulates connections between the bot's HTTP clients and the services."""

import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
)
from functools import partial
from http import HTTPStatus
from typing import Any, Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from bot.services.http import CheckedRequest

# A function from the header `Authorization` to a status and a body.
Service = Callable[[str], Awaitable[tuple[int, Mapping[str, Any]]]]


class Session:
    """Replaces aiohttp's session. The hostname in the URL determines which service is called."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services

    def request(self, method: str, url: URL, **options: Any) -> "Sending":
        """Send a request. As in aiohttp, the result supports both `await` and `async with`."""
        return Sending(self._respond(method, url, **options))

    async def _respond(
        self,
        _method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        middlewares: Iterable[Any],
        **_: Any,
    ) -> "Response":
        """Run the client's middleware, and then pass the request to the service."""
        send: Any = _send
        for middleware in reversed(tuple(middlewares)):
            send = partial(middleware, handler=send)
        service = self._services[url.host or ""]
        status, body = await send(_Request(service, dict(headers).get("Authorization", "")))
        return Response(status, json.dumps(body).encode())


class Sending:
    """A request that is being sent."""

    def __init__(self, response: "Coroutine[Any, Any, Response]") -> None:
        self._response = response

    def __await__(self) -> "Generator[Any, Any, Response]":
        return self._response.__await__()

    async def __aenter__(self) -> "Response":
        return await self._response

    async def __aexit__(self, *_: object) -> None:
        """Leave nothing open."""


class _AtOnce(aiohttp.ClientRequest):
    """A request that reaches the service immediately."""

    def __init__(self, service: Service, authorization: str) -> None:
        self._service, self._authorization = service, authorization

    async def send(self, _: Any) -> Any:
        """Write the request."""
        return await self._service(self._authorization)


class _Request(CheckedRequest, _AtOnce):
    """A request that is sent only if its permit is still valid."""


async def _send(request: _Request) -> Any:
    return await request.send(None)  # type: ignore[arg-type]


class Response:
    """A response whose headers and body arrive at the same time."""

    content_length = None

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body
        self.ok = status < HTTPStatus.BAD_REQUEST
        self.headers = CIMultiDict[str]()
        self.content = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave nothing open."""

    async def iter_any(self, _: int = 0) -> AsyncIterator[bytes]:
        """Yield the body."""
        yield self._body

    iter_chunked = iter_any
