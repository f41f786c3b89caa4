"""The gateway's own responses: errors, including 429s in the inventory service's format."""

import json
import math
from http import HTTPStatus

from aiohttp import web

from bot.errors import DatabaseUnavailable, GatehouseError, OrganizationBlocked, QuotaExhausted
from bot.gateway.rules import GatewayRefusal, Headers
from bot.gateway.turns import Stopping
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import BlockCode, pause_seconds
from bot.services.errors import RateLimited, ServiceTimeout

# Marks the gateway's own responses. Responses from the service don't have this header.
OWN = {"Gatehouse-Answered": "gateway", "Server": "Gatehouse"}
UNAVAILABLE_RETRY_SECONDS = "5"
CONCURRENT_RETRY_SECONDS = 2.0


def answer_to(error: GatehouseError, *, has_codes: bool) -> tuple[str, web.Response]:
    """Return the metrics label and the response for a failed request.

    With `has_codes`, a decline has a code of the inventory service.
    """
    word = error.outcome
    status = HTTPStatus.TOO_MANY_REQUESTS
    headers: Headers = ()
    decline: tuple[str, int, float] | None = None
    match error:
        case QuotaExhausted(limit_kind=LimitKind.CONCURRENT):
            # Running calls usually end long before their timeout.
            seconds = min(error.seconds, CONCURRENT_RETRY_SECONDS)
            decline = error.limit_kind, BlockCode.CONCURRENT, seconds
        case QuotaExhausted():
            decline = error.limit_kind, BlockCode[error.limit_kind.upper()], error.seconds
        case OrganizationBlocked():
            decline = "blocked", error.code, error.seconds
        case RateLimited():
            # The listing that the call needed was refused.
            code = BlockCode.known(error.code)
            decline = "blocked", code, max(pause_seconds(code, 0), error.retry_after)
        case GatewayRefusal():
            word, status, headers = error.word, error.status, error.headers
        case DatabaseUnavailable() | Stopping():
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case ServiceTimeout():
            status = HTTPStatus.GATEWAY_TIMEOUT
        case _:
            status = HTTPStatus.BAD_GATEWAY
    codes = {}
    if decline is not None:
        kind, number, seconds = decline
        word = f"declined_{kind}"
        codes = {"code": int(number)} if has_codes else {}
        headers = [("Retry-After", whole_seconds(seconds)), ("Gatehouse-Declined", kind)]
    answer = message(status, error.sentence, **codes)
    answer.headers.update(headers)
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers["Retry-After"] = UNAVAILABLE_RETRY_SECONDS
    return word, answer


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
