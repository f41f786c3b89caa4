"""Attempts to apply a request: what a failure proves, and when the request has failed.

Gatehouse repeats a failed attempt after a pause. Some failures can't be fixed by retrying; others
don't show whether the change took effect, so Gatehouse reads the list first.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus

from bot.approvals.rules.approval import State
from bot.errors import GatehouseError, NotConfigured
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.testusers.rules.applying import Outcome, Post
from bot.testusers.rules.requests import Request

# Contract, section 6: three attempts with increasing pauses. Later calls are checks, not attempts.
TRIES = 3
LOOKS = 2
PAUSES_SECONDS = (1.0, 3.0, 0.5, 4.0)
_REFUSALS = (CredentialsRefused, PermissionMissing, RateLimited, NotConfigured)
# Responses from a proxy whose service may still be processing the request.
_PROXY_STATUSES = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
_FIRST_VENDOR_STATUS = 520
_MAY_PASS = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY}
)
NOT_THEIR_FAULT = "This isn't your fault: whoever runs Gatehouse has been notified."


def outcome_of(error: GatehouseError) -> Outcome | None:
    """Return the outcome of a POST that ended with this error; None if the POST changed nothing."""
    if isinstance(error, ServiceUnreachable):
        return Outcome.UNANSWERED if error.sent else None
    if isinstance(error, ServiceTimeout):
        return Outcome.UNANSWERED
    if isinstance(error, ServiceRefused):
        return Outcome.UNANSWERED if error.status == HTTPStatus.REQUEST_TIMEOUT else None
    if isinstance(error, ServiceFailed):
        is_of_proxy = error.status in _PROXY_STATUSES or error.status >= _FIRST_VENDOR_STATUS
        return Outcome.UNANSWERED if is_of_proxy else Outcome.ANSWERED
    return None if isinstance(error, _REFUSALS) else Outcome.ANSWERED


def is_final(error: GatehouseError) -> bool:
    """Return True if the same call would fail again."""
    if isinstance(error, ServiceRefused):
        passes = error.status in _MAY_PASS or error.status == HTTPStatus.REQUEST_TIMEOUT
        return not passes
    return isinstance(error, (CredentialsRefused, PermissionMissing, NotConfigured))


def is_spent(request: Request) -> bool:
    """Return True if no attempts are left, and only a check of the list remains."""
    return request.progress.tries >= TRIES


def is_last_try(request: Request) -> bool:
    """Return True if the next attempt is the last."""
    return request.progress.tries == TRIES - 1


def tried(
    request: Request, error: GatehouseError, at: datetime, post: Post | None, *, is_shared: bool
) -> Request:
    """Return the request after a failed attempt.

    Args:
        request: The request.
        error: The failure.
        at: The time of the failure.
        post: The POST that was sent for the request and is in doubt.
        is_shared: True if other requests were refused in the same POST; the next attempt, which is
            the last, sends this request alone.
    """
    is_refused, tries = is_final(error) and post is None, request.progress.tries + 1
    if is_shared and is_refused and not isinstance(error, (CredentialsRefused, NotConfigured)):
        tries, pause = TRIES - 1, 0.0
    elif is_refused or tries >= (TRIES if post is None else TRIES + LOOKS):
        return failed(request, reason_of(error), is_unsure=post is not None)
    else:
        pause = PAUSES_SECONDS[tries - 1]
    progress = replace(
        request.progress,
        tries=tries,
        failure=reason_of(error),
        is_unsure=post is not None and post.outcome is Outcome.UNANSWERED,
        retry_at=at + timedelta(seconds=pause),
    )
    return replace(request, progress=progress)


def failed(request: Request, reason: str, *, is_unsure: bool = False) -> Request:
    """Return the request as failed; `is_unsure` if the outcome of its POST is still unknown."""
    progress = replace(
        request.progress, tries=TRIES, failure=reason, is_unsure=is_unsure, retry_at=None
    )
    return replace(request, state=State.FAILED, progress=progress)


def reason_of(error: GatehouseError) -> str:
    """Return the reason for a failure, for people who can only click Retry."""
    if isinstance(error, CredentialsRefused):
        return f"The flow service rejected Gatehouse's credentials (HTTP 401). {NOT_THEIR_FAULT}"
    if isinstance(error, PermissionMissing):
        return f"The flow service doesn't allow Gatehouse to do this (HTTP 403). {NOT_THEIR_FAULT}"
    if isinstance(error, ServiceFailed):
        return f"The flow service is having problems (HTTP {error.status})."
    sentence = error.sentence
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
