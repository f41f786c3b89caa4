"""Why a call to a service failed: one error for each cause.

    ServiceError            has the service, and if a retry may help
    ├── ServiceUnreachable  no connection, or it broke
    ├── ServiceTimeout      no whole answer in time
    ├── Redirected          answered with another address, which is never followed
    ├── ResponseTooLarge    more than is ever read
    ├── ResponseUnreadable  not proper HTTP
    │   ├── NotJson         something else than JSON
    │   └── WrongForm       JSON, and not of the form in the specification
    ├── CredentialsRefused  401: the credential is wrong, or no longer valid
    ├── PermissionMissing   403: the credential lacks a right
    ├── RotatingRefreshToken  a kind of OAuth that is not supported
    ├── RateLimited         429: has the code, the service's words and the limits it reported
    ├── ServiceRefused      another 4xx, or a code that is not 0
    └── ServiceFailed       5xx

As for every error of `bot.errors`, the sentence is plain text without a credential or a body.
"""

from typing import ClassVar

from bot.errors import GatehouseError
from bot.model.quotas.reported import ReportedLimits


class ServiceError(GatehouseError):
    """A call to a service failed.

    `service` is `inventory`, `flow`, `email` or `oauth`; `retryable` says if the same call may
    well succeed a moment later; `message` are the service's own words, where it gave any.
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
    """No connection, or it broke before the answer was whole; `sent` is False without one."""

    outcome = "unreachable"
    is_passing = True
    retryable_by_nature = True

    def __init__(
        self, service: str, sentence: str, *, retryable: bool | None = None, sent: bool = True
    ) -> None:
        super().__init__(service, sentence, retryable=retryable)
        self.sent = sent


class ServiceTimeout(ServiceError):
    """No whole answer in time. What was asked may have been done all the same."""

    outcome = "timeout"
    is_passing = True
    retryable_by_nature = True


class Redirected(ServiceError):
    """The service answered with another address; a credential never follows one."""

    outcome = "redirected"


class ResponseTooLarge(ServiceError):
    """The answer is larger than what is ever read."""

    outcome = "too_large"


class ResponseUnreadable(ServiceError):
    """The answer is none that can be read: not proper HTTP, or what its two kinds say."""

    outcome = "unreadable"


class NotJson(ResponseUnreadable):
    """The answer is something else than JSON: a page for people, or cut off in the middle."""

    outcome = "not_json"


class WrongForm(ResponseUnreadable):
    """The answer is JSON, and not of the form in the specification."""

    outcome = "wrong_form"


class CredentialsRefused(ServiceError):
    """401: the credential is wrong, or no longer valid."""

    outcome = "credentials_refused"


class PermissionMissing(ServiceError):
    """403: the credential is good, and lacks a right."""

    outcome = "permission_missing"


class RotatingRefreshToken(ServiceError):
    """An OAuth provider gave a new refresh token: there is no place to keep it over restarts."""

    outcome = "rotating_token"


class ServiceRefused(ServiceError):
    """Another 4xx (`status`), or a `code` that is not 0; the sentence has the service's words."""

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
    """429. `code` is 44, 45, 1070, another one, or None where the body has none.

    `message` are the service's own words; `reported` its headers, where it sent them.
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
    ) -> None:
        super().__init__(service, sentence, message=message)
        self.code = code
        self.reported = reported
