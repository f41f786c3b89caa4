"""The gateway's own answers: refusals, declines in the service's form, and what went wrong."""

import json
import math
from http import HTTPStatus

from aiohttp import web

from bot.errors import DatabaseUnavailable, GatehouseError, OrganizationBlocked, QuotaExhausted
from bot.model.gateway import GatewayRefusal
from bot.model.quotas.blocks import BlockCode
from bot.service_errors import ServiceTimeout
from bot.workflows.turns import Stopping

DECLINED = "Gatehouse-Declined"
DATABASE_RETRY_SECONDS = 5
STOPPING_RETRY_SECONDS = 1
CONCURRENT_RETRY_SECONDS = 2.0
CONCURRENT, BLOCKED = "concurrent", "blocked"

_CODES = {
    "minute": BlockCode.MINUTE,
    "day": BlockCode.DAY,
    CONCURRENT: BlockCode.CONCURRENT,
}


def as_answer(error: GatehouseError) -> web.Response:
    """The answer to a request that came to nothing."""
    if isinstance(error, GatewayRefusal):
        return refusal(error)
    if isinstance(error, QuotaExhausted):
        return declined(error.limit_kind, _CODES[error.limit_kind], error.sentence, error.seconds)
    if isinstance(error, OrganizationBlocked):
        return declined(BLOCKED, error.code, error.sentence, error.seconds)
    if isinstance(error, DatabaseUnavailable):
        return _later(error.sentence, DATABASE_RETRY_SECONDS)
    if isinstance(error, Stopping):
        return _later(error.sentence, STOPPING_RETRY_SECONDS)
    is_late = isinstance(error, ServiceTimeout)
    status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.BAD_GATEWAY
    return message(status, error.sentence)


def word_of(error: GatehouseError) -> str:
    """The same as a word for metrics."""
    if isinstance(error, GatewayRefusal):
        return error.word
    if isinstance(error, QuotaExhausted):
        return f"declined_{error.limit_kind}"
    if isinstance(error, OrganizationBlocked):
        return f"declined_{BLOCKED}"
    return "no_database" if isinstance(error, DatabaseUnavailable) else error.outcome


def refusal(error: GatewayRefusal) -> web.Response:
    """What a client may not do, or what could be read in two ways."""
    answer = message(error.status, error.sentence)
    if error.status == HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="gatehouse"'
    return answer


def declined(kind: str, code: int, sentence: str, seconds: float) -> web.Response:
    """What the service itself would say, and that it was not the service that said it."""
    if kind == CONCURRENT:
        # A call that runs is nearly always over long before it would be given up.
        seconds = min(seconds, CONCURRENT_RETRY_SECONDS)
    body = {"code": int(code), "message": sentence}
    return web.json_response(
        body,
        status=HTTPStatus.TOO_MANY_REQUESTS,
        headers={"Retry-After": whole_seconds(seconds), DECLINED: kind},
        dumps=_dumps,
    )


def message(status: int, sentence: str) -> web.Response:
    """A sentence in JSON."""
    return web.json_response({"message": sentence}, status=status, dumps=_dumps)


def whole_seconds(seconds: float) -> str:
    """As `Retry-After` has it: rounded up, and one at least."""
    return str(max(1, math.ceil(seconds)))


def _later(sentence: str, seconds: int) -> web.Response:
    answer = message(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
    answer.headers["Retry-After"] = str(seconds)
    return answer


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
