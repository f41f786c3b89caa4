"""Errors from service calls. Each cause has its own class and a sentence for people.

As with all errors in `bot.errors`, the sentence is plain text without credentials. It may quote the
code and the message in a response's body, but nothing else from the body.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from bot.errors import GatehouseError
from bot.ops.clock import read_date
from bot.ops.redaction import Redactor
from bot.services.calls import ServiceCall
from bot.spelling import visible


@dataclass(eq=False, repr=False)
class ServiceError(GatehouseError):
    """A failed call to a service.

    `service` is `inventory`, `flow`, `email`, or `oauth`. `sent` is False if the call was never
    sent. `message` and `code` come from the service's response, if it contains them. `retry_after`
    is the number of seconds in the response's `Retry-After`, or 0 if there is none.
    """

    outcome = "service_error"
    service: str
    sentence: str = field()
    _: KW_ONLY
    message: str = ""
    status: int = 0
    code: int | None = None
    sent: bool = True
    retry_after: float = 0.0


class ServiceUnreachable(ServiceError):
    """The connection failed or was lost."""

    outcome = "unreachable"
    is_passing = True


class ServiceTimeout(ServiceError):
    """The complete response didn't arrive in time. The service may have processed the request."""

    outcome = "timeout"
    is_passing = True


class Redirected(ServiceError):
    """The service responded with a redirect. Redirects aren't followed, to protect credentials."""

    outcome = "redirected"


class ResponseTooLarge(ServiceError):
    """The response is larger than Gatehouse accepts."""

    outcome = "too_large"


class ResponseUnreadable(ServiceError):
    """The response is invalid HTTP, isn't JSON, or doesn't match the specification."""

    outcome = "unreadable"


class NotJson(ResponseUnreadable):
    """The response isn't JSON. It may be an error page or incomplete JSON."""

    outcome = "not_json"


class WrongForm(ResponseUnreadable):
    """The response is JSON that doesn't match the specification."""

    outcome = "wrong_form"


class CredentialsRefused(ServiceError):
    """Status 401: the credential is incorrect or no longer valid."""

    outcome = "credentials_refused"


class PermissionMissing(ServiceError):
    """Status 403: the credential is valid but lacks a permission."""

    outcome = "permission_missing"


class RotatingRefreshToken(ServiceError):
    """The OAuth provider issues a new refresh token at each renewal. A restart would lose it."""

    outcome = "rotating_token"


class ProviderThrottled(ServiceError):
    """The OAuth provider issues no tokens for a while."""

    outcome = "provider_throttled"
    is_passing = True


class ServiceRefused(ServiceError):
    """Another 4xx status, or a `code` other than 0: the service refused the request."""

    outcome = "service_refused"


class ServiceFailed(ServiceError):
    """Status 5xx: the service is having problems."""

    outcome = "service_failed"
    is_passing = True


class RateLimited(ServiceError):
    """Status 429. `code` is 44, 45, 1070, another number, or None if the body has no code."""

    outcome = "rate_limited"


LONGEST_REASON = 300
LONGEST_SECONDS = 999_999.0
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# The JSON of a larger error isn't read, because parsing it would delay everyone.
LONGEST_ERROR_BYTES = 64 * 1024

VERDICTS: Mapping[int, tuple[type[ServiceError], str]] = {
    401: (CredentialsRefused, "rejected Gatehouse's credentials"),
    403: (PermissionMissing, "doesn't allow this with Gatehouse's credentials"),
    404: (ServiceRefused, "can't find this"),
    429: (RateLimited, "is receiving too many requests"),
}

Model = TypeVar("Model", bound=BaseModel)


def failure_of_status(
    call: ServiceCall, status: int, headers: Mapping[str, str], body: bytes, redactor: Redactor
) -> ServiceError | None:
    """Return the error for a response with this HTTP status, or None if the status is 2xx."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    code, words = code_and_words(call, body, redactor)
    match status // 100:
        case 3:
            failure: ServiceError = Redirected(
                call.service,
                f"{call.subject} redirected the request (HTTP {status}). Its configured URL is"
                " probably wrong.",
            )
        case 4:
            error_type, verdict = VERDICTS.get(status, (ServiceRefused, "rejected the request"))
            said = f"The response says: “{words}”" if words else ""
            parts = (f"{call.subject} {verdict} (HTTP {status}).", call.advice.get(status), said)
            sentence = " ".join(filter(None, parts))
            if status == HTTPStatus.NOT_FOUND and (words or code is not None):
                sentence = call.missing or sentence
            failure = error_type(call.service, sentence, status=status, code=code, message=words)
        case _:
            sentence = (
                f"{call.subject} is having problems (HTTP {status}). Try again in a few minutes."
            )
            failure = ServiceFailed(call.service, sentence, status=status, message=words)
    failure.retry_after = seconds_in(headers)
    return failure


def seconds_in(headers: Mapping[str, str]) -> float:
    """Return the seconds until the time in `Retry-After`, or 0 if there is no valid time.

    The header contains a number of seconds or a date (RFC 9110, section 10.2.3). Some services send
    a fraction.
    """
    told = headers.get("Retry-After", "")
    if _SECONDS.fullmatch(told):
        return min(float(told), LONGEST_SECONDS)
    then = read_date(told)
    if then is None:
        return 0.0
    seconds = (then - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), LONGEST_SECONDS)


def code_and_words(call: ServiceCall, body: bytes, redactor: Redactor) -> tuple[int | None, str]:
    """Return the code (or None) and the message (or an empty string) in the JSON of an error."""
    if len(body) > LONGEST_ERROR_BYTES:
        return None, ""
    try:
        sent = from_json(body)
    except ValueError:
        return None, ""
    if not isinstance(sent, dict):
        return None, ""
    code = sent.get("code")
    is_code = isinstance(code, int) and not isinstance(code, bool)
    # The email service sends a list of errors.
    match sent.get("errors"):
        case [dict(first), *_]:
            sent = first
    said = [sent.get(field) for field in call.words_fields]
    words = ": ".join(word for word in said if word and isinstance(word, str))
    return (code if is_code else None), plain_words(words, redactor)


def plain_words(text: str, redactor: Redactor) -> str:
    """Return a service's message as one short line, without control characters or secrets."""
    # Redact first, because a secret that is cut off wouldn't be recognized.
    line = visible(" ".join(redactor.clean(text).split()))
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def wrong_form(call: ServiceCall, why: str) -> WrongForm:
    """Return the error for a response that doesn't match the specification. `why` is the reason."""
    return WrongForm(call.service, f"{call.subject} sent an unexpected response ({why}).")


def json_of(call: ServiceCall, body: bytes) -> object:
    """Return the parsed JSON of a response, or raise NotJson if its body isn't JSON."""
    try:
        sent: object = from_json(body)
    except ValueError:
        raise _not_json(call) from None
    return sent


def model_in(call: ServiceCall, body: bytes, model: type[Model]) -> Model:
    """Read a response's JSON with a model. A WrongForm error names the field but not its value.

    Fields that the model doesn't have never become Python objects, which would take seconds for a
    large response.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        if problem["type"] == "json_invalid":
            raise _not_json(call) from None
        place = ".".join(map(str, problem["loc"]))
        raise wrong_form(call, f"field “{place}”" if place else "not the expected object") from None


def _not_json(call: ServiceCall) -> NotJson:
    sentence = f"{call.subject} sent a response that Gatehouse can't read, because it is not JSON."
    return NotJson(call.service, sentence)
