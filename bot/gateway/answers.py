"""Answers from the gateway itself: refusals, declines in the service's format, and errors."""

import json
import math
from http import HTTPStatus

from aiohttp import web

from bot.errors import DatabaseUnavailable, GatehouseError, OrganizationBlocked, QuotaExhausted
from bot.gateway.rules import GatewayRefusal
from bot.gateway.turns import Stopping
from bot.quotas.rules.blocks import BlockCode
from bot.services.errors import ServiceTimeout, ServiceUnreachable

# Marks the gateway's own responses; the service's responses are passed on unchanged.
OWN = {"Gatehouse-Answered": "gateway"}
DECLINED = "Gatehouse-Declined"
DATABASE_RETRY_SECONDS = 5
STOPPING_RETRY_SECONDS = 1
CONCURRENT_RETRY_SECONDS = 2.0
CONCURRENT, BLOCKED = "concurrent", "blocked"


def as_answer(error: GatehouseError) -> web.Response:
    """Return the response to a request that failed."""
    if isinstance(error, GatewayRefusal):
        answer = message(error.status, error.sentence)
        if error.status == HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="gatehouse"'
        return answer
    if isinstance(error, QuotaExhausted):
        code = BlockCode[error.limit_kind.upper()]
        return declined(error.limit_kind, code, error.sentence, error.seconds)
    if isinstance(error, OrganizationBlocked):
        return declined(BLOCKED, error.code, error.sentence, error.seconds)
    if isinstance(error, DatabaseUnavailable | Stopping):
        answer = message(HTTPStatus.SERVICE_UNAVAILABLE, error.sentence)
        is_stopping = isinstance(error, Stopping)
        seconds = STOPPING_RETRY_SECONDS if is_stopping else DATABASE_RETRY_SECONDS
        answer.headers["Retry-After"] = str(seconds)
        return answer
    is_late = isinstance(error, ServiceTimeout)
    status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.BAD_GATEWAY
    return message(status, error.sentence)


def word_of(error: GatehouseError) -> str:
    """Return the request's outcome as a metrics label."""
    if isinstance(error, GatewayRefusal):
        return error.word
    if isinstance(error, QuotaExhausted):
        return f"declined_{error.limit_kind}"
    if isinstance(error, OrganizationBlocked):
        return f"declined_{BLOCKED}"
    return "no_database" if isinstance(error, DatabaseUnavailable) else error.outcome


def is_for_nothing(error: GatehouseError) -> bool:
    """Return True if the call was never sent, in which case clients may retry immediately."""
    declined = isinstance(error, QuotaExhausted | OrganizationBlocked)
    return declined or (isinstance(error, ServiceUnreachable) and not error.sent)


def declined(kind: str, code: int, sentence: str, seconds: float) -> web.Response:
    """Return the service's response for this limit, marked as the gateway's."""
    if kind == CONCURRENT:
        # Running calls usually end long before their timeout.
        seconds = min(seconds, CONCURRENT_RETRY_SECONDS)
    body = {"code": int(code), "message": sentence}
    return web.json_response(
        body,
        status=HTTPStatus.TOO_MANY_REQUESTS,
        headers={**OWN, "Retry-After": whole_seconds(seconds), DECLINED: kind},
        dumps=_dumps,
    )


def message(status: int, sentence: str) -> web.Response:
    """Return a response with a sentence as JSON."""
    return web.json_response({"message": sentence}, status=status, headers=OWN, dumps=_dumps)


def unreadable(status: int) -> web.Response:
    """Return the response to a request that isn't valid HTTP."""
    is_long = status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    sentence = (
        "The address or a header is too long." if is_long else "The request is not valid HTTP."
    )
    return message(status, sentence)


def whole_seconds(seconds: float) -> str:
    """Format seconds for `Retry-After`: rounded up, and at least 1."""
    return str(max(1, math.ceil(seconds)))


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
