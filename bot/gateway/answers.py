"""The gateway's own responses: errors, including 429s in the inventory service's format."""

import json
import math
from http import HTTPStatus

from aiohttp import web

from bot.errors import DatabaseUnavailable, GatehouseError, OrganizationBlocked, QuotaExhausted
from bot.gateway.rules import GatewayRefusal
from bot.gateway.turns import Stopping
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import BlockCode, pause_seconds
from bot.services.errors import RateLimited, ServiceTimeout

# Marks the gateway's own responses. Responses from the service don't have this header.
OWN = {"Gatehouse-Answered": "gateway", "Server": "Gatehouse"}
UNAVAILABLE_RETRY_SECONDS = "5"
CONCURRENT_RETRY_SECONDS = 2.0


def answer_to(error: GatehouseError, *, is_api: bool) -> tuple[str, web.Response]:
    """Return the metrics label and the response for a failed request.

    Codes are those of the inventory service, so declines of other APIs' calls have none.
    """
    if isinstance(error, GatewayRefusal):
        answer = message(error.status, error.sentence)
        if error.status == HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="gatehouse"'
        if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
            answer.headers["Retry-After"] = UNAVAILABLE_RETRY_SECONDS
        return error.word, answer
    if isinstance(error, QuotaExhausted):
        kind = error.limit_kind
        code = None if is_api else BlockCode[error.limit_kind.upper()]
        return f"declined_{kind}", declined(kind, code, error.sentence, error.seconds)
    if isinstance(error, OrganizationBlocked):
        blocked = None if is_api else error.code
        answer = declined("blocked", blocked, error.sentence, error.seconds)
        return "declined_blocked", answer
    if isinstance(error, RateLimited):
        # The listing that the call needed was refused.
        code = BlockCode.known(error.code)
        seconds = max(pause_seconds(code, 0), error.retry_after)
        return "declined_blocked", declined("blocked", code, error.sentence, seconds)
    if isinstance(error, DatabaseUnavailable | Stopping):
        answer = message(HTTPStatus.SERVICE_UNAVAILABLE, error.sentence)
        answer.headers["Retry-After"] = UNAVAILABLE_RETRY_SECONDS
        return error.outcome, answer
    is_late = isinstance(error, ServiceTimeout)
    status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.BAD_GATEWAY
    return error.outcome, message(status, error.sentence)


def declined(kind: str, code: int | None, sentence: str, seconds: float) -> web.Response:
    """Return a 429 in the service's format, with headers that mark it as the gateway's own."""
    if kind == LimitKind.CONCURRENT:
        # Running calls usually end long before their timeout.
        seconds = min(seconds, CONCURRENT_RETRY_SECONDS)
    codes = {} if code is None else {"code": int(code)}
    answer = message(HTTPStatus.TOO_MANY_REQUESTS, sentence, **codes)
    answer.headers["Retry-After"] = whole_seconds(seconds)
    answer.headers["Gatehouse-Declined"] = kind
    return answer


def message(status: int, sentence: str, **more: object) -> web.Response:
    """Return a JSON response that contains the sentence as `message` and the fields in `more`."""
    body = json.dumps({**more, "message": sentence}, ensure_ascii=False)
    content_type = "application/json"
    return web.Response(text=body, status=status, headers=OWN, content_type=content_type)


def unreadable(status: int) -> web.Response:
    """Return the response to a request that isn't valid HTTP."""
    return message(status, "The request isn't valid HTTP, or its URL or a header is too long.")


def whole_seconds(seconds: float) -> str:
    """Format seconds for `Retry-After`, rounded up to a whole number of at least 1."""
    return str(max(1, math.ceil(seconds)))
