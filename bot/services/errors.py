"""Errors of service calls, with a class for each cause.

    ServiceError            names the service, and whether a retry may help
    ├── ServiceUnreachable  no connection, or the connection broke
    ├── ServiceTimeout      no complete answer in time
    ├── Redirected          answered with a redirect, which is never followed
    ├── ResponseTooLarge    exceeds the size limit
    ├── ResponseUnreadable  invalid HTTP
    │   ├── NotJson         anything but JSON
    │   └── WrongForm       JSON that doesn't match the specification
    ├── CredentialsRefused  401: the credential is wrong, or no longer valid
    ├── PermissionMissing   403: the credential lacks a permission
    ├── RotatingRefreshToken  a kind of OAuth that is not supported
    ├── RateLimited         429: has the code, message, and limits from the service
    ├── ServiceRefused      another 4xx, or a code other than 0
    └── ServiceFailed       5xx

As for all errors in `bot.errors`, the sentence is plain text without credentials or bodies.
"""

from typing import ClassVar

from bot.errors import GatehouseError
from bot.services.calls import ReportedLimits


class ServiceError(GatehouseError):
    """A call to a service failed.

    `service` is `inventory`, `flow`, `email`, or `oauth`; `retryable` is True if the same call may
    succeed a moment later; `message` is the service's own message, if any.
    """

    outcome = "service_error"
    retryable_by_nature: ClassVar[bool] = False

    def __init__(
        self, service: str, sentence: str, *, retryable: bool | None = None, message: str = ""
    ) -> None:
        super().__init__(sentence)
        self.service = service
        self.message = message
        self.retryable = self.retryable_by_nature if retryable is None else retryable


class ServiceUnreachable(ServiceError):
    """The connection failed (`sent` is False), or was lost before the whole answer arrived."""

    outcome = "unreachable"
    is_passing = True
    retryable_by_nature = True

    def __init__(
        self, service: str, sentence: str, *, retryable: bool | None = None, sent: bool = True
    ) -> None:
        super().__init__(service, sentence, retryable=retryable)
        self.sent = sent


class ServiceTimeout(ServiceError):
    """No complete answer arrived in time. The service may still have processed the request."""

    outcome = "timeout"
    is_passing = True
    retryable_by_nature = True


class Redirected(ServiceError):
    """The service answered with a redirect, which is never followed, to protect credentials."""

    outcome = "redirected"


class ResponseTooLarge(ServiceError):
    """The answer exceeds the size limit."""

    outcome = "too_large"


class ResponseUnreadable(ServiceError):
    """The answer is unreadable: invalid HTTP, or one of the two subclasses."""

    outcome = "unreadable"


class NotJson(ResponseUnreadable):
    """The answer isn't JSON: an error page, or a truncated answer."""

    outcome = "not_json"


class WrongForm(ResponseUnreadable):
    """The answer is JSON that doesn't match the specification."""

    outcome = "wrong_form"


class CredentialsRefused(ServiceError):
    """401: the credential is wrong, or no longer valid."""

    outcome = "credentials_refused"


class PermissionMissing(ServiceError):
    """403: the credential is valid but lacks a permission."""

    outcome = "permission_missing"


class RotatingRefreshToken(ServiceError):
    """The OAuth provider rotates refresh tokens, which Gatehouse couldn't keep across restarts."""

    outcome = "rotating_token"


class ServiceRefused(ServiceError):
    """Another 4xx (`status`), or a `code` other than 0; the sentence quotes the service."""

    outcome = "service_refused"

    def __init__(
        self,
        service: str,
        sentence: str,
        *,
        status: int,
        code: int | None = None,
        message: str = "",
    ) -> None:
        super().__init__(service, sentence, message=message)
        self.status = status
        self.code = code


class ServiceFailed(ServiceError):
    """5xx: the service is having problems."""

    outcome = "service_failed"
    is_passing = True
    retryable_by_nature = True

    def __init__(self, service: str, sentence: str, *, status: int) -> None:
        super().__init__(service, sentence)
        self.status = status


class RateLimited(ServiceError):
    """429. `code` is 44, 45, 1070, another number, or None if the body has no code.

    `message` is the service's own message; `reported` has its limit headers, if any; `retry_after`
    is `Retry-After` in seconds, 0 if missing.
    """

    outcome = "rate_limited"

    def __init__(
        self,
        service: str,
        sentence: str,
        *,
        code: int | None,
        message: str = "",
        reported: ReportedLimits | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(service, sentence, message=message)
        self.code = code
        self.retry_after = retry_after
        self.reported = reported
