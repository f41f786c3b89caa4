"""An answer or an accident, turned into one error with a sentence: one type for each cause."""

import ssl
import unicodedata
from collections.abc import Mapping
from http import HTTPStatus
from typing import TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bot.clients.calls import Answer, ServiceCall
from bot.errors import (
    CredentialsRefused,
    NotJson,
    PermissionMissing,
    RateLimited,
    Redirected,
    ResponseTooLarge,
    ResponseUnreadable,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
    WrongForm,
)
from bot.model.told import ToldLimits
from bot.redaction import Redactor

LONGEST_REASON = 300

Model = TypeVar("Model", bound=BaseModel)


def is_success(status: int) -> bool:
    """2xx."""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def is_redirect(status: int) -> bool:
    """3xx, with or without an address to go to."""
    return HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST


def failure_of_status(
    call: ServiceCall, status: int, headers: Mapping[str, str], body: bytes, redactor: Redactor
) -> ServiceError | None:
    """The error that a status means, or None for a 2xx."""
    if is_success(status):
        return None
    if is_redirect(status):
        return Redirected(
            call.service,
            f"{call.subject} answered with another address (HTTP {status}), which is never"
            " followed. The configured address is probably wrong.",
        )
    code, words = code_and_words(call, body, redactor)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        told = ToldLimits.from_headers(headers)
        return RateLimited(
            call.service, _told(call, status, words), code=code, message=words, told=told
        )
    if not HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
        sentence = f"{call.subject} has a problem of its own (HTTP {status})."
        return ServiceFailed(call.service, sentence, status=status)
    return _refusal(call, status, code, words)


def _refusal(call: ServiceCall, status: int, code: int | None, words: str) -> ServiceError:
    sentence = _told(call, status, words)
    if status == HTTPStatus.UNAUTHORIZED:
        return CredentialsRefused(call.service, sentence, message=words)
    if status == HTTPStatus.FORBIDDEN:
        return PermissionMissing(call.service, sentence, message=words)
    return ServiceRefused(call.service, sentence, status=status, code=code, message=words)


def _told(call: ServiceCall, status: int, words: str) -> str:
    verdict = {
        401: "refuses the credential",
        403: "says that the credential lacks a permission",
        404: "does not know what was asked for",
        429: "declines: too many requests",
    }.get(status, "declines the request")
    parts = [f"{call.subject} {verdict} (HTTP {status})."]
    parts += [call.advice[status]] if status in call.advice else []
    parts += [f"Its words: “{words}”"] if words else []
    return " ".join(parts)


def refused_by_code(call: ServiceCall, status: int, code: int) -> ServiceRefused:
    """A 2xx whose body says otherwise: its `code` is not 0. Nothing else of the body is shown."""
    sentence = f"{call.subject} declines the request (code {code})."
    return ServiceRefused(call.service, sentence, status=status, code=code)


def code_and_words(call: ServiceCall, body: bytes, redactor: Redactor) -> tuple[int | None, str]:
    """`code` and the words in a JSON object; no other part of a body is ever shown."""
    try:
        sent = from_json(body)
    except ValueError:
        return None, ""
    if not isinstance(sent, dict):
        return None, ""
    code, message = sent.get("code"), sent.get(call.words_field)
    is_code = isinstance(code, int) and not isinstance(code, bool)
    words = plain_words(message, redactor) if isinstance(message, str) else ""
    return (code if is_code else None), words


def plain_words(text: str, redactor: Redactor) -> str:
    """A service's words on one line, short, without control characters and secrets."""
    clean = redactor.clean(text)
    visible = (" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in clean)
    line = " ".join("".join(visible).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def failure_of_accident(call: ServiceCall, accident: Exception, seconds: float) -> ServiceError:
    """The error that an exception of the HTTP library means. It is not quoted: it has addresses."""
    if isinstance(accident, TimeoutError):
        sentence = f"{call.subject} gave no whole answer within {seconds:g} seconds."
        return ServiceTimeout(call.service, sentence)
    if isinstance(accident, (aiohttp.ClientConnectorCertificateError, ssl.SSLError)):
        sentence = f"{call.subject} does not prove who it is: its TLS certificate is not valid."
        return ServiceUnreachable(call.service, sentence, retryable=False, sent=False)
    if isinstance(accident, (aiohttp.ClientConnectorDNSError, aiohttp.InvalidURL)):
        sentence = f"{call.subject} cannot be reached: there is no host of that name."
        return ServiceUnreachable(call.service, sentence, sent=False)
    if isinstance(accident, aiohttp.ClientResponseError):
        return ResponseUnreadable(call.service, f"{call.subject} does not answer in proper HTTP.")
    if isinstance(accident, aiohttp.ClientConnectorError):
        sentence = f"{call.subject} cannot be reached."
        return ServiceUnreachable(call.service, sentence, sent=False)
    sentence = f"{call.subject} broke the connection before its answer was whole."
    return ServiceUnreachable(call.service, sentence)


def too_large(call: ServiceCall, most_bytes: int) -> ResponseTooLarge:
    """The answer goes on after `most_bytes`."""
    return ResponseTooLarge(
        call.service, f"{call.subject} answered with more than {most_bytes >> 20} MiB: not read."
    )


def wrong_form(call: ServiceCall, why: str) -> WrongForm:
    """The answer is not what the specification says; `why` completes the sentence."""
    return WrongForm(call.service, f"{call.subject} gave an answer {why}.")


def json_of(call: ServiceCall, answer: Answer) -> object:
    """The body as JSON; raises NotJson."""
    try:
        sent: object = from_json(answer.body)
    except ValueError:
        sentence = f"{call.subject} gave an answer that is not JSON."
        raise NotJson(call.service, sentence) from None
    return sent


def model_of(call: ServiceCall, sent: object, model: type[Model]) -> Model:
    """What `json_of` gave, as `model`; raises WrongForm, which names the field and no value."""
    try:
        return model.model_validate(sent)
    except ValidationError as error:
        places = [".".join(map(str, one["loc"])) for one in error.errors(include_input=False)]
        where = places[0] or "the whole"
        raise wrong_form(call, f"of another form than expected (at “{where}”)") from None
