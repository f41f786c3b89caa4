"""A try that failed: the next one later, or the request failed with the service's reason.

A request whose POST is in doubt has perhaps taken effect. It is not called failed before the list
has been read again; and when it is, the list is looked at until it is known.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus

from bot.errors import GatehouseError, NotConfigured
from bot.model.doubt import DoubtfulPost, sent_at
from bot.model.testusers.approval import State
from bot.model.testusers.requests import Progress, Request
from bot.service_errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceRefused,
    ServiceUnreachable,
)
from bot.workflows.testusers.finishing import ChangeSet

# Contract, section 6: three tries, growing pauses. What follows are looks, not tries.
TRIES = 3
LOOKS = 2
PAUSES_SECONDS = (1.0, 3.0, 0.5, 4.0)
UNKNOWN = (
    " I don't know whether the change went through. I keep checking the list and will say so here."
    " You can also press Retry (it's safe)."
)
LATE = " If the service still carries it out, this card will say so."
_REFUSALS = (CredentialsRefused, PermissionMissing, RateLimited, NotConfigured)


def is_certain(error: GatehouseError) -> bool:
    """Return whether a POST that ended so has certainly changed nothing, and never will."""
    if isinstance(error, ServiceUnreachable):
        return not error.sent
    if isinstance(error, ServiceRefused):
        return error.status != HTTPStatus.REQUEST_TIMEOUT
    return isinstance(error, _REFUSALS)


def is_spent(request: Request) -> bool:
    """Return whether the tries are used up, and only a look at the list is left."""
    return request.progress.tries >= TRIES


def is_last_try(request: Request) -> bool:
    """Return whether the next try is the last."""
    return request.progress.tries == TRIES - 1


async def note_failure(
    changes: ChangeSet,
    request_ids: Collection[str],
    posts: Sequence[DoubtfulPost],
    error: GatehouseError,
    at: datetime,
) -> None:
    """Count a failed try of these requests; after the third a request has failed.

    `posts` are those of the flow that are in doubt.
    """
    for request_id in sorted(request_ids):
        unsure = any(post.is_of(request_id) for post in posts)
        tried = partial(_tried, reason=error.sentence, at=at, is_unsure=unsure)
        await changes.write_failed_try(request_id, tried, sent_at(posts))


def failed(request: Request, *, is_in_doubt: bool) -> Request:
    """The request, failed: the list was read, and what it asks for is not true."""
    return _failed(request, request.progress.failure + (LATE if is_in_doubt else ""))


def known(progress: Progress) -> Progress:
    """The progress of a request that has failed, without the doubt that there was."""
    failure = progress.failure.removesuffix(LATE).removesuffix(UNKNOWN)
    return replace(progress, failure=failure, is_unsure=False)


def _tried(request: Request, reason: str, at: datetime, *, is_unsure: bool) -> Request:
    tries = request.progress.tries + 1
    if tries >= TRIES + (LOOKS if is_unsure else 0):
        return _failed(request, reason + (UNKNOWN if is_unsure else ""), is_unsure=is_unsure)
    retry_at = at + timedelta(seconds=PAUSES_SECONDS[tries - 1])
    progress = replace(request.progress, tries=tries, failure=reason, retry_at=retry_at)
    return replace(request, progress=progress)


def _failed(request: Request, reason: str, *, is_unsure: bool = False) -> Request:
    progress = replace(
        request.progress, tries=TRIES, failure=reason, is_unsure=is_unsure, retry_at=None
    )
    return replace(request, state=State.FAILED, progress=progress)
