"""Connections as a seed would have them: the bot's HTTP clients write, and a service answers."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self

import aiohttp
from yarl import URL

from bot.services.http import CheckedRequest

# Given the header `Authorization`, a status and what is to be in the body.
Service = Callable[[str], Awaitable[tuple[int, Mapping[str, Any]]]]


class Session:
    """Stands in for aiohttp's: the host says which of the `services` answers."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services

    async def request(
        self,
        _method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        middlewares: Iterable[Any],
        **_: Any,
    ) -> "Response":
        """Have a request go through the client's own checks to the service."""
        send: Any = _send
        for middleware in reversed(tuple(middlewares)):
            send = partial(middleware, handler=send)
        service = self._services[url.host or ""]
        status, body = await send(_Request(service, dict(headers).get("Authorization", "")))
        return Response(status, json.dumps(body).encode())


class _AtOnce(aiohttp.ClientRequest):
    """A request that is with its service as soon as it is written."""

    def __init__(self, service: Service, authorization: str) -> None:
        self._service, self._authorization = service, authorization

    async def send(self, _: Any) -> Any:
        """Write it."""
        return await self._service(self._authorization)


class _Request(CheckedRequest, _AtOnce):
    """The same, asked before whether it may still be sent."""


async def _send(request: _Request) -> Any:
    return await request.send(None)  # type: ignore[arg-type]


class Response:
    """An answer whose headers and body come at once."""

    content_length = None

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body
        self.headers: dict[str, str] = {}
        self.content = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left open."""

    async def iter_any(self, _: int = 0) -> AsyncIterator[bytes]:
        """The body."""
        yield self._body

    iter_chunked = iter_any
