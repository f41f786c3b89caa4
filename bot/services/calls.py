"""Types for service calls: requests, reasons, responses, and reported limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Literal, Self

from yarl import URL

# A call that takes longer fails.
TOTAL_SECONDS = 10.0


@dataclass(frozen=True)
class ServiceCall:
    """A request to a service, with the wording for its error messages.

    `label` is the service's name as used within a sentence. `advice` maps HTTP statuses to
    sentences that recommend a fix. `missing` is the error message for a 404 that the service itself
    sent. `words_fields` are the fields of an error's JSON that contain the error message. `explain`
    can replace the error for a refused call with a more precise one.
    """

    service: Literal["inventory", "api", "flow", "email", "oauth"]
    label: str
    method: str
    url: URL = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Sequence[tuple[str, str]] | None = field(default=None, repr=False)
    data_center: str | None = None
    advice: Mapping[int, str] = field(default_factory=dict, repr=False)
    missing: str = ""
    words_fields: tuple[str, ...] = ("message",)
    explain: Callable[[Any], Exception] = lambda error: error

    @property
    def subject(self) -> str:
        """The label with a capital first letter, for the start of a sentence."""
        return self.label[:1].upper() + self.label[1:]


# The metric labels of outcomes that mean the same with any HTTP status.
REFUSED = "credentials_refused"
LABELS = {REFUSED: "401", "provider_throttled": "429"}


@dataclass(frozen=True)
class Observed:
    """The result of one attempt at a call, for metrics and `/gatehouse status`.

    `outcome` is `ok`, `cancelled`, or the error's outcome.
    """

    service: str
    data_center: str | None
    outcome: str
    status: int | None

    @property
    def label(self) -> str:
        """The status as a metric label: the HTTP status, unless the outcome says more.

        OAuth providers refuse a credential with any status, even with 200.
        """
        if self.outcome in LABELS:
            return LABELS[self.outcome]
        is_failed = self.outcome not in {"ok", "cancelled"}
        if self.status is None or (is_failed and self.status < HTTPStatus.BAD_REQUEST):
            return self.outcome
        return str(self.status)


Observer = Callable[[Observed], None]
"""A function that receives the result of each attempt. It must not raise an exception."""


# The kinds of calls that the guard and the charts distinguish.
PROBE = "probe"
WATCH = "watch"
CHECK = "check"
GATEWAY = "gateway"
LIST = "list"
REFRESH = "refresh"
# Distinguishes gateway clients from people, who are stored by their Slack IDs.
_CALLER = "client:"


def client_named(caller: str) -> str | None:
    """Return the name of a caller that is a gateway client, or None for a person or the bot."""
    return caller.removeprefix(_CALLER) if caller.startswith(_CALLER) else None


class CallClass(StrEnum):
    """The class of a call: a person's call, a background call, or a probe at the end of a pause."""

    PERSON = "person"
    BACKGROUND = "background"
    PROBE = "probe"


@dataclass(frozen=True)
class Write:
    """A call that may change something, as the audit log records it. The path has no query.

    `sha256` and `size` describe the body.
    """

    method: str
    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class CallCause:
    """The reason for a call: its kind, and the person or gateway client that requested it.

    Background calls leave some slots free for people. `write` describes a client's write.
    """

    kind: str
    slack_user_id: str | None = None
    background: bool = False
    client: str | None = None
    write: Write | None = None

    @property
    def caller(self) -> str:
        """The caller's name in the ledger, which is empty for the bot itself."""
        return _CALLER + self.client if self.client else self.slack_user_id or ""

    @property
    def call_class(self) -> CallClass:
        """The class that determines the limits for the call. Only people's calls are retried."""
        if self.kind == PROBE:
            return CallClass.PROBE
        return CallClass.BACKGROUND if self.background else CallClass.PERSON


# Values with more digits are ignored, because no limit is that high.
MOST_DIGITS = 9


@dataclass(frozen=True)
class ReportedLimits:
    """The daily limit and usage stated in a response's headers. The values may be implausible.

    Some deployments leave out these headers or send zeros.
    """

    limit: int
    remaining: int
    reset_seconds: int

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self | None:
        """Return the limits in the headers, or None unless all three headers contain integers.

        `headers` must be a case-insensitive mapping.
        """
        numbers = []
        for name in ("Limit", "Remaining", "Reset"):
            text = headers.get(f"X-Rate-Limit-{name}", "")
            if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
                return None
            numbers.append(int(text))
        return cls(*numbers)


# These outcomes don't mean that the service has a problem: a person's input can cause a rejection,
# a limit applies to one organization and has an incident, and a call is canceled when nobody is
# waiting for the result anymore.
ANSWERS = frozenset({"service_refused", "rate_limited", "cancelled"})
# `/emailkey check <resource>` is expected to fail for resources that the key can't read.
HARMLESS = {"email": ANSWERS | {"permission_missing"}}


@dataclass(frozen=True)
class ServiceSeen:
    """A service's last success and failure. `is_failing` is True if the failure is more recent."""

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None
    is_failing: bool = False

    @property
    def is_refused(self) -> bool:
        """True if the service refused the credential in the last call."""
        return self.is_failing and self.failure == REFUSED


class ServiceLog:
    """Remembers each service's last success and failure in this process."""

    def __init__(self, now: Callable[[], datetime], names: Sequence[str]) -> None:
        self._now = now
        self._seen = {name: ServiceSeen(name) for name in names}

    def note(self, name: str, failure: str | None) -> None:
        """Record a call. `failure` is the error's outcome, or None if the call succeeded."""
        old = self._seen.get(name, ServiceSeen(name))
        if failure is None:
            self._seen[name] = replace(old, succeeded_at=self._now(), is_failing=False)
        # Requests to an OAuth provider contain no input from people, so a rejection is a problem.
        elif name.startswith("oauth") or failure not in HARMLESS.get(name, ANSWERS):
            self._seen[name] = replace(old, failed_at=self._now(), failure=failure, is_failing=True)

    def seen(self) -> list[ServiceSeen]:
        """Return each service's last success and failure, in the order of `names`."""
        return list(self._seen.values())
