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
    declined, code, seconds = "", 0, 0.0
    match error:
        case QuotaExhausted():
            declined, seconds = error.limit_kind, error.seconds
            code = BlockCode[declined.upper()]
            if declined == LimitKind.CONCURRENT:
                # Running calls usually end long before their timeout.
                seconds = min(seconds, CONCURRENT_RETRY_SECONDS)
        case OrganizationBlocked():
            declined, code, seconds = "blocked", error.code, error.seconds
        case RateLimited():
            # The listing that the call needed was refused.
            declined, code = "blocked", BlockCode.known(error.code)
            seconds = max(pause_seconds(code, 0), error.retry_after)
        case GatewayRefusal():
            word, status, headers = error.word, error.status, error.headers
        case DatabaseUnavailable() | Stopping():
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case ServiceTimeout():
            status = HTTPStatus.GATEWAY_TIMEOUT
        case _:
            status = HTTPStatus.BAD_GATEWAY
    codes = {}
    if declined:
        word = f"declined_{declined}"
        codes = {"code": int(code)} if has_codes else {}
        headers = [("Retry-After", whole_seconds(seconds)), ("Gatehouse-Declined", declined)]
    answer = message(status, error.sentence, **codes)
    answer.headers.update(headers)
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers["Retry-After"] = UNAVAILABLE_RETRY_SECONDS
    return word, answer


def message(status: int, sentence: str, **more: object) -> web.Response:
    """Return a JSON response that contains the sentence as `message` and the fields in `more`."""
    body = json.dumps({**more, "message": sentence}, ensure_ascii=False)
    return web.json_response(text=body, status=status, headers=OWN)


def unreadable(status: int) -> web.Response:
    """Return the response to a request that isn't valid HTTP."""
    return message(status, "The request isn't valid HTTP, or its URL or a header is too long.")


def whole_seconds(seconds: float) -> str:
    """Format seconds for `Retry-After`, rounded up to a whole number of at least 1."""
    return str(max(1, math.ceil(seconds)))
