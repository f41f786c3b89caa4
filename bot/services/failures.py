"""Turns failed answers and connections into errors, with a class and a sentence for each cause."""

import ssl
import unicodedata
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bot.ops.redaction import Redactor
from bot.services.calls import Answer, ServiceCall
from bot.services.errors import (
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

LONGEST_REASON, READ_OF_WORDS = 300, 3_000
LONGEST_SECONDS_DIGITS = 6
_SUCCESS, _REDIRECT, _REFUSAL = 2, 3, 4
_SERVER_ERROR = 500

VERDICTS = {
    401: "rejected Gatehouse's credentials",
    403: "doesn't allow this with Gatehouse's credentials",
    404: "can't find this",
    429: "is getting too many requests",
}

_OF_THE_CREDENTIAL: Mapping[int, type[ServiceError]] = {
    HTTPStatus.UNAUTHORIZED: CredentialsRefused,
    HTTPStatus.FORBIDDEN: PermissionMissing,
}

Model = TypeVar("Model", bound=BaseModel)


class NeverSentError(Exception):
    """An error before any part of the request was sent."""


class HeldUpError(NeverSentError):
    """The request can't be sent anymore, because its permit has expired."""


class UnsendableError(NeverSentError):
    """A header contains a character that HTTP doesn't allow."""


_UNSENDABLE = (
    "The call to {label} can't be sent, because its credential or address has a character that HTTP"
    " doesn't allow. Check the setting for a line break."
)
_HELD_UP = "The call to {label} took too long to start, so it wasn't sent. Please try again."
_CERTIFICATE = (aiohttp.ClientConnectorCertificateError, ssl.SSLError)
_NEVER_SENT: Sequence[tuple[type[Exception] | tuple[type[Exception], ...], str]] = (
    (HeldUpError, _HELD_UP),
    (UnsendableError, _UNSENDABLE),
    (aiohttp.ConnectionTimeoutError, "{subject} can't be reached: no connection was made in time."),
    (_CERTIFICATE, "{subject} has an invalid TLS certificate."),
    (
        (aiohttp.ClientConnectorDNSError, aiohttp.InvalidURL),
        "{subject} can't be reached: its host name doesn't exist.",
    ),
    # The status was sent by a proxy that refused to connect.
    (
        aiohttp.ClientHttpProxyError,
        "{subject} can't be reached: the proxy refused to connect (HTTP {status}).",
    ),
    (aiohttp.ClientConnectorError, "{subject} can't be reached."),
)
# After these errors, an immediate retry doesn't help or would take too long.
_FINAL = (
    *(UnsendableError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError),
    *_CERTIFICATE,
)


def failure_of_status(
    call: ServiceCall, status: int, headers: Mapping[str, str], body: bytes, redactor: Redactor
) -> ServiceError | None:
    """Return the error for an answer with this status, or None for a 2xx status."""
    kind = status // 100
    if kind == _SUCCESS:
        return None
    if kind == _REDIRECT:
        return Redirected(
            call.service,
            f"{call.subject} redirected the request (HTTP {status}). Its configured address is"
            " probably wrong.",
        )
    if kind != _REFUSAL:
        sentence = f"{call.subject} is having problems (HTTP {status}). Try again in a few minutes."
        return ServiceFailed(call.service, sentence, status=status)
    code, words = code_and_words(call, body, redactor)
    verdict = VERDICTS.get(status, "rejected the request")
    advice, said = call.advice.get(status, ""), f"It said: “{words}”" if words else ""
    parts = (f"{call.subject} {verdict} (HTTP {status}).", advice, said)
    sentence = " ".join(filter(None, parts))
    if status in _OF_THE_CREDENTIAL:
        return _OF_THE_CREDENTIAL[status](call.service, sentence, message=words)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        told = headers.get("Retry-After", "")
        is_number = told.isascii() and told.isdigit() and len(told) <= LONGEST_SECONDS_DIGITS
        limited = RateLimited(call.service, sentence, code=code, message=words)
        limited.retry_after = float(told) if is_number else 0.0
        return limited
    if status == HTTPStatus.NOT_FOUND and (words or code is not None):
        sentence = call.missing or sentence
    return ServiceRefused(call.service, sentence, status=status, code=code, message=words)


def refused_by_code(call: ServiceCall, status: int, code: int) -> ServiceRefused:
    """Return the error for a 2xx answer with a `code` other than 0. It only shows the code."""
    sentence = f"{call.subject} rejected the request (code {code})."
    return ServiceRefused(call.service, sentence, status=status, code=code)


def code_and_words(call: ServiceCall, body: bytes, redactor: Redactor) -> tuple[int | None, str]:
    """Return the `code` and the message in an error's JSON, the only parts that are shown."""
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
    """Return a service's message as one short line, without control characters or secrets."""
    # Redacting comes first, because a secret that is cut off wouldn't be recognized.
    clean = redactor.clean(text)[:READ_OF_WORDS]
    visible = (" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in clean)
    line = " ".join("".join(visible).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def failure_of_accident(call: ServiceCall, accident: Exception, seconds: float) -> ServiceError:
    """Return the error for an exception of the HTTP library.

    The exception's text isn't used, because it contains URLs.
    """
    for types, unsent in _NEVER_SENT:
        if isinstance(accident, types):
            status = getattr(accident, "status", 0)
            return ServiceUnreachable(
                call.service,
                unsent.format(subject=call.subject, label=call.label, status=status),
                retryable=not isinstance(accident, _FINAL) or status >= _SERVER_ERROR,
                sent=False,
            )
    if isinstance(accident, TimeoutError):
        sentence = f"{call.subject} didn't respond within {seconds:g} seconds."
        return ServiceTimeout(call.service, sentence)
    if isinstance(accident, aiohttp.ClientResponseError):
        sentence = f"{call.subject} sent a response that Gatehouse can't read."
        return ResponseUnreadable(call.service, sentence)
    return ServiceUnreachable(call.service, f"{call.subject} closed the connection early.")


def too_large(call: ServiceCall, most_bytes: int) -> ResponseTooLarge:
    """Return the error for an answer of more than `most_bytes`."""
    return ResponseTooLarge(
        call.service, f"{call.subject} sent too much data (over {most_bytes >> 20} MiB)."
    )


def wrong_form(call: ServiceCall, why: str) -> WrongForm:
    """Return the error for an answer that isn't as specified; `why` names the problem."""
    return WrongForm(call.service, f"{call.subject} sent an unexpected response ({why}).")


def json_of(call: ServiceCall, answer: Answer) -> object:
    """Return the parsed JSON of an answer; raise NotJson if its body isn't JSON."""
    try:
        sent: object = from_json(answer.body)
    except ValueError:
        sentence = f"{call.subject} sent a response that Gatehouse can't read (not JSON)."
        raise NotJson(call.service, sentence) from None
    return sent


def model_of(call: ServiceCall, sent: object, model: type[Model]) -> Model:
    """Validate JSON as a model; raise WrongForm, which names the wrong field but not its value."""
    try:
        return model.model_validate(sent)
    except ValidationError as error:
        places = [
            ".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False)
        ]
        where = f"field “{places[0]}”" if places[0] else "not the expected object"
        raise wrong_form(call, where) from None
