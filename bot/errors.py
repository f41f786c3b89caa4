"""Everything that is expected to go wrong, each with a sentence that a person can be shown.

    GatehouseError
    ├── UsageError              what was typed is not understood; has the usage and one example
    ├── Refused                 the person lacks the permission
    │   └── UnknownPerson       who it is, or what they belong to, could not be established
    ├── NotConfigured           a service lacks settings, which are named
    ├── NotFound                no such organization, flow, request ...
    ├── Ambiguous               several things have that name; has the candidates
    ├── TooManyCommands         the person's limit per minute; has the seconds to wait
    ├── DatabaseUnavailable     nothing can be looked up or recorded
    │   ├── DatabaseInUse       another process uses the same SQLite file
    │   ├── DatabaseTooNew      the schema is of a newer program
    │   └── CommitUnknown       it broke off while it committed: nobody knows whether it is done
    ├── Conflict                somebody else was first: the state has already changed
    ├── QuotaError              the bot itself declines to call the inventory service
    │   ├── QuotaExhausted      a limit is used up; has the limit and the time it is free again
    │   └── OrganizationBlocked the service blocks the organization; has the code and the end
    ├── SlackError              Slack did not take what we sent
    │   ├── SlackUnreachable    no answer, or one that is not Slack's
    │   ├── SlackRateLimited    429; has the seconds to wait
    │   ├── SlackMessageGone    the message to edit is not there any more
    │   └── SlackRefused        anything else; has Slack's name for it
    └── ServiceError            a call to a service failed; has the service, and if a retry may help
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
        ├── RateLimited         429: has the code, the service's words and the limits it told
        ├── ServiceRefused      another 4xx, or a code that is not 0
        └── ServiceFailed       5xx

The sentence is plain text: escape it before Slack reads it as markup. It never holds a credential,
nor a body. `outcome` is a short stable word for metrics and logs.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from bot.model.told import ToldLimits


class GatehouseError(Exception):
    """The root: catch it to answer with `sentence`."""

    outcome: ClassVar[str] = "error"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class UsageError(GatehouseError):
    """What was typed is not understood.

    `usage` is the form of the command (`/orgs show <id or name>`), `example` one that works.
    """

    outcome = "usage"

    def __init__(self, sentence: str, usage: str, example: str) -> None:
        super().__init__(sentence)
        self.usage = usage
        self.example = example


class Refused(GatehouseError):
    """The person may not do this; the sentence says which permission is missing and who has it."""

    outcome = "refused"


class UnknownPerson(Refused):
    """Who the person is, or what they belong to, could not be established: hence refused."""

    outcome = "unknown_person"


class NotConfigured(GatehouseError):
    """A service lacks settings. `service` is its name in a sentence, as in "the flow service"."""

    outcome = "not_configured"

    def __init__(self, service: str, settings: Sequence[str]) -> None:
        named = ", ".join(settings)
        super().__init__(
            f"{service[:1].upper()}{service[1:]} is not set up yet."
            f" Ask the operator of Gatehouse to set {named}."
        )
        self.service = service
        self.settings = tuple(settings)


class NotFound(GatehouseError):
    """There is no such thing."""

    outcome = "not_found"


class Ambiguous(GatehouseError):
    """Several things fit what was typed; `candidates` are texts to choose from.

    `choices` are the same ones for a menu: a value, and a short text to choose it by.
    """

    outcome = "ambiguous"

    def __init__(
        self, sentence: str, candidates: Sequence[str], choices: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.candidates = tuple(candidates)
        self.choices = dict(choices or {})


class TooManyCommands(GatehouseError):
    """The person's commands of this minute are used up."""

    outcome = "too_many_commands"

    def __init__(self, retry_after_seconds: float) -> None:
        seconds = max(1, math.floor(retry_after_seconds) + 1)
        super().__init__(f"That is a lot of commands at once. Please try again in {seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class DatabaseUnavailable(GatehouseError):
    """The database did not answer: nothing is guessed, nothing is done."""

    outcome = "database"

    def __init__(
        self, sentence: str = "The database cannot be reached. Nothing was done; please try again."
    ) -> None:
        super().__init__(sentence)


class DatabaseInUse(DatabaseUnavailable):
    """Another process holds the lock of the same SQLite file."""

    outcome = "database_in_use"

    def __init__(self, lock_path: str) -> None:
        super().__init__(
            f"Another Gatehouse process uses this SQLite database (lock {lock_path}). "
            "Stop it, or use PostgreSQL, which any number of processes may share."
        )


class DatabaseTooNew(DatabaseUnavailable):
    """The schema was made by a newer program than this one."""

    outcome = "database_too_new"

    def __init__(self) -> None:
        super().__init__(
            "The database was made by a newer version of Gatehouse: "
            "run that version, or restore a backup."
        )


class CommitUnknown(DatabaseUnavailable):
    """The database broke off while it committed; `Nothing was done` would be a guess."""

    outcome = "commit_unknown"

    def __init__(self) -> None:
        super().__init__(
            "The database broke off at the last moment, so it is not sure whether this was done. "
            "Please look before you try again."
        )


class Conflict(GatehouseError):
    """Somebody else was first; the sentence says who and when."""

    outcome = "conflict"


class QuotaError(GatehouseError):
    """The bot itself declines to call the inventory service."""

    outcome = "quota"


class QuotaExhausted(QuotaError):
    """A limit is used up. `limit_kind` is `minute`, `day` or `concurrent`."""

    outcome = "quota_exhausted"

    def __init__(self, sentence: str, *, limit_kind: str, free_at: datetime) -> None:
        super().__init__(sentence)
        self.limit_kind = limit_kind
        self.free_at = free_at


class OrganizationBlocked(QuotaError):
    """The service blocks the organization: no call before `until`. `code` is 44, 45 or 1070."""

    outcome = "organization_blocked"

    def __init__(self, sentence: str, *, code: int, until: datetime) -> None:
        super().__init__(sentence)
        self.code = code
        self.until = until


class SlackError(GatehouseError):
    """Slack did not take what we sent."""

    outcome = "slack"


class SlackUnreachable(SlackError):
    """No answer in time, or one that is not Slack's; what was sent may have arrived."""

    outcome = "slack_unreachable"

    def __init__(self) -> None:
        super().__init__("Slack cannot be reached at the moment.")


class SlackRateLimited(SlackError):
    """Slack answered 429."""

    outcome = "slack_rate_limited"

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"Slack asks us to wait {retry_after_seconds:.0f} s.")
        self.retry_after_seconds = retry_after_seconds


class SlackMessageGone(SlackError):
    """The message is not there any more, or can no longer be edited."""

    outcome = "slack_message_gone"

    def __init__(self) -> None:
        super().__init__("That message is not there any more.")


# https://docs.slack.dev/reference/methods/views.open
TRIGGER_GONE = frozenset({"expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id"})


class SlackRefused(SlackError):
    """Slack refused; `error` is its name for why, such as `channel_not_found`."""

    outcome = "slack_refused"

    def __init__(self, error: str, detail: str = "") -> None:
        super().__init__(
            "Slack opens a form within three seconds of a click only. Please try again."
            if error in TRIGGER_GONE
            else f"Slack refused: {error}{f' ({detail})' if detail else ''}."
        )
        self.error = error


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
    retryable_by_nature = True

    def __init__(
        self, service: str, sentence: str, *, retryable: bool | None = None, sent: bool = True
    ) -> None:
        super().__init__(service, sentence, retryable=retryable)
        self.sent = sent


class ServiceTimeout(ServiceError):
    """No whole answer in time. What was asked may have been done all the same."""

    outcome = "timeout"
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
    """5xx: the service has a problem of its own."""

    outcome = "service_failed"
    retryable_by_nature = True

    def __init__(self, service: str, sentence: str, *, status: int) -> None:
        super().__init__(service, sentence)
        self.status = status


class RateLimited(ServiceError):
    """429. `code` is 44, 45, 1070, another one, or None where the body has none.

    `message` are the service's own words; `told` its headers, where it sent them.
    """

    outcome = "rate_limited"

    def __init__(
        self,
        service: str,
        sentence: str,
        *,
        code: int | None,
        message: str = "",
        told: ToldLimits | None = None,
    ) -> None:
        super().__init__(service, sentence, message=message)
        self.code = code
        self.told = told
