"""Errors of service calls, with a class for each cause.

As with all errors in `bot.errors`, the sentence is plain text for people. It never includes
credentials or a response's body.
"""

from typing import ClassVar

from bot.errors import GatehouseError


class ServiceError(GatehouseError):
    """A failed call to a service.

    `service` is `inventory`, `flow`, `email`, or `oauth`. `retryable` is True if the same call may
    succeed a moment later. `message` and `code` come from the service's answer, if it has them.
    """

    outcome = "service_error"
    retryable_by_nature: ClassVar[bool] = False

    def __init__(
        self,
        service: str,
        sentence: str,
        *,
        retryable: bool | None = None,
        message: str = "",
        status: int = 0,
        code: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.service = service
        self.retryable = self.retryable_by_nature if retryable is None else retryable
        self.message = message
        self.status = status
        self.code = code


class ServiceUnreachable(ServiceError):
    """The connection failed or was lost. `sent` is False if the request was never sent."""

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
    """The service answered with a redirect. It isn't followed, to protect credentials."""

    outcome = "redirected"


class ResponseTooLarge(ServiceError):
    """The answer is larger than the client accepts."""

    outcome = "too_large"


class ResponseUnreadable(ServiceError):
    """The answer can't be used: it's invalid HTTP, not JSON, or not as specified."""

    outcome = "unreadable"


class NotJson(ResponseUnreadable):
    """The answer isn't JSON, but an error page or a truncated answer, for example."""

    outcome = "not_json"


class WrongForm(ResponseUnreadable):
    """The answer is JSON that doesn't match the specification."""

    outcome = "wrong_form"


class CredentialsRefused(ServiceError):
    """Status 401: the credential is wrong or no longer valid."""

    outcome = "credentials_refused"


class PermissionMissing(ServiceError):
    """Status 403: the credential is valid but lacks a permission."""

    outcome = "permission_missing"


class RotatingRefreshToken(ServiceError):
    """The OAuth provider rotates refresh tokens, which would be lost in a restart."""

    outcome = "rotating_token"


class ServiceRefused(ServiceError):
    """The service refused the request with another 4xx status, or a `code` other than 0."""

    outcome = "service_refused"


class ServiceFailed(ServiceError):
    """Status 5xx: the service is having problems."""

    outcome = "service_failed"
    is_passing = True
    retryable_by_nature = True


class RateLimited(ServiceError):
    """Status 429. `retry_after` is the header `Retry-After` in seconds, or 0.

    `code` is 44, 45, 1070, another number, or None if the body has no code.
    """

    outcome = "rate_limited"
    retry_after: float = 0.0
