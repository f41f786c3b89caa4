"""Programs that ask for changes to test users, and read what became of them, over HTTP."""

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from bot.errors import (
    Conflict,
    GatehouseError,
    NotFound,
    Refused,
    TooManyCommands,
    UnknownPerson,
    UsageError,
)
from bot.gateway.answers import message, whole_seconds
from bot.gateway.rules import GatewayRefusal, Headers, forbidden, malformed
from bot.slack.parse import escaped
from bot.slack.people import Pace, is_not_found
from bot.store.audit_entry import BOT
from bot.testusers import asking
from bot.testusers.asking import Program, TooManyOpen
from bot.testusers.parse.command import ChangeRequest, parse_testusers
from bot.testusers.parts import Parts
from bot.testusers.rendering import answer_to_program
from bot.testusers.rules.requests import Asked

PATH = "/testusers"
MOST_BYTES = 64 * 1024
OPEN_RETRY_SECONDS = 60.0
REQUEST_ID = re.compile("[0-9a-f]{1,32}")
UNKNOWN = "This client hasn't made a request with this ID."
ONLY_CHANGES = "A program can only use “add” and “remove”, without “now”."
STARTING = "Gatehouse is still starting. Please try again in a moment."
NOT_TEXT = "Send the text that you would type after /testusers, in UTF-8, and nothing around it."

ReadBody = Callable[[int], Awaitable[bytes]]
"""Gets the most bytes to read, and returns the body."""


@dataclass(eq=False)
class Programs:
    """Answers requests to `/testusers` in the name of each client's owner."""

    bot: Parts
    pace: Pace

    async def answer(self, request: web.BaseRequest, client: str, read: ReadBody) -> web.Response:
        """Return the response to a client's request, or raise GatewayRefusal."""
        path = request.raw_path.partition("?")[0]
        is_post = path == PATH
        allowed = "POST" if is_post else "GET"
        if request.method != allowed:
            raise GatewayRefusal(
                HTTPStatus.METHOD_NOT_ALLOWED,
                Refused.outcome,
                f"Only {allowed} is possible here.",
                [("Allow", allowed)],
            )
        body = await read(MOST_BYTES)
        owner = self.bot.settings.gateway_clients[client].owner
        try:
            if owner is None:
                raise forbidden(f"The client {client} has no owner, so it can't ask for changes.")
            self.pace.require(client, "requests" if is_post else "questions")
            program = Program(client, owner, hashlib.sha256(body.strip()).hexdigest())
            if is_post:
                return await self._asked(program, request.content_type, body)
            return await self._told(program, path.removeprefix(f"{PATH}/"))
        except GatehouseError as error:
            refusal = _refusal(error)
            if refusal.status == HTTPStatus.FORBIDDEN:
                detail = {"client": client, "reason": refusal.sentence}
                await self.bot.people.record_refusal(owner or BOT, "request", detail, is_rare=True)
            raise refusal from error

    async def _asked(self, program: Program, content_type: str, body: bytes) -> web.Response:
        """Ask for the change in the body, or return the request if it was asked for before."""
        bot = self.bot
        async with bot.database.read_only(sees_snapshot=False) as tx:
            request = await asking.asked_before(tx, program, await tx.now())
        if request is not None:
            return await self._object(HTTPStatus.ACCEPTED, Asked(request.flow, request=request))
        kind = content_type.casefold()
        if kind == "application/json" or kind.startswith("multipart/"):
            raise malformed(NOT_TEXT)
        try:
            typed = body.decode().strip()
        except UnicodeDecodeError:
            raise malformed(NOT_TEXT) from None
        requested = parse_testusers(escaped(typed))
        if not isinstance(requested, ChangeRequest) or requested.now:
            raise malformed(ONLY_CHANGES)
        if not bot.people.is_ready:
            raise UnknownPerson(STARTING)
        asked = await asking.ask_for(bot, program, requested)
        status = HTTPStatus.OK if asked.request is None else HTTPStatus.ACCEPTED
        return await self._object(status, asked)

    async def _told(self, program: Program, request_id: str) -> web.Response:
        request = None
        if REQUEST_ID.fullmatch(request_id):
            request = await asking.made_by(self.bot, program, request_id)
        if request is None:
            raise GatewayRefusal(HTTPStatus.NOT_FOUND, "not_found", UNKNOWN)
        decided_by, reason = request.decision
        more = {"decided_by": decided_by, "reason": reason}
        return await self._object(HTTPStatus.OK, Asked(request.flow, request=request), **more)

    async def _object(self, status: int, asked: Asked, **more: str | None) -> web.Response:
        request = asked.request
        told = {"request": request and request.id, "state": request and request.state, **more}
        return message(status, await answer_to_program(self.bot, asked), **told)


def _refusal(error: GatehouseError) -> GatewayRefusal:
    """Return an error with the status that tells the program whether and how to go on."""
    word = error.outcome
    headers: Headers = ()
    match error:
        case GatewayRefusal():
            return error
        case UsageError() | NotFound():
            status = HTTPStatus.BAD_REQUEST
        case TooManyCommands() | TooManyOpen():
            status = HTTPStatus.TOO_MANY_REQUESTS
            word = Refused.outcome
            seconds = getattr(error, "retry_after_seconds", OPEN_RETRY_SECONDS)
            headers = [("Retry-After", whole_seconds(seconds))]
        case UnknownPerson() if not is_not_found(error.__cause__):
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case Refused() | Conflict():
            status = HTTPStatus.FORBIDDEN
        case _:
            status = HTTPStatus.SERVICE_UNAVAILABLE
    return GatewayRefusal(status, word, error.sentence, headers)
