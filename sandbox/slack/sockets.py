"""Implements Socket Mode, in which the bot receives payloads over WebSocket connections.

Each call to `apps.connections.open` lets the bot open one connection. The first message on each
connection is `hello`. Payloads are sent over the newest connection. Each payload is wrapped in an
envelope, and the bot acknowledges the envelope by its ID. The details follow Slack's documentation
page "Using Socket Mode".
"""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from sandbox.slack.messages import Json


class Sockets:
    """The bot's open connections. `changed` is called whenever a connection opens or closes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._open: list[web.WebSocketResponse] = []
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._numbers = itertools.count(1)
        self._tickets: set[str] = set()

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def ticket(self) -> str:
        """Return a secret that can be used once to open a connection."""
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return ticket

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Send `hello` over a new connection. Read acknowledgements until the connection closes."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=401)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": len(self._open) + 1})
        self._open.append(socket)
        self._changed()
        try:
            async for message in socket:
                if message.type is web.WSMsgType.TEXT:
                    self._acknowledge(message.json())
        finally:
            self._open.remove(socket)
            self._changed()
        return socket

    def _acknowledge(self, reply: Json) -> None:
        waiting = self._waiting.pop(str(reply.get("envelope_id")), None)
        if waiting and not waiting.done():
            waiting.set_result(reply)

    async def send(self, kind: str, payload: Json, fields: Json) -> Json | None:
        """Send a payload over the newest connection, and return the acknowledgement.

        Return None if no connection is open. The envelope also contains the given `fields`.
        """
        if not self._open:
            return None
        envelope_id = f"envelope-{next(self._numbers)}"
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[envelope_id] = reply
        envelope = {
            "envelope_id": envelope_id,
            "type": kind,
            "payload": payload,
            "accepts_response_payload": kind != "events_api",
            **fields,
        }
        await self._open[-1].send_json(envelope)
        return await reply

    async def close(self) -> None:
        """Close every connection."""
        for socket in list(self._open):
            with suppress(ConnectionError):
                await socket.close()
