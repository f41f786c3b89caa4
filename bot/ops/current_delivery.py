"""Tracks the current Slack request. Its ID appears in logs, stored work, and the audit log."""

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import structlog

ID_CHARACTERS = 12
_digest: ContextVar[str] = ContextVar("digest", default="")


@contextmanager
def following(key: str = "") -> Iterator[None]:
    """Set the current Slack request, also for tasks started in the `with` block.

    `key` is the same for repeats of a request. It's empty if repeats are detected in another way.
    """
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest() if key else ""
    token = _digest.set(digest)
    try:
        with following_again(digest[:ID_CHARACTERS] or new_delivery_id()):
            yield
    finally:
        _digest.reset(token)


@contextmanager
def following_again(*ids: str) -> Iterator[None]:
    """Include earlier requests' IDs in logs while continuing their work. Ignore empty IDs."""
    before = delivery_id()
    now_following(*ids)
    try:
        yield
    finally:
        structlog.contextvars.unbind_contextvars("request_id")
        now_following(before)


def now_following(*ids: str) -> None:
    """Set the current requests' IDs until the surrounding `following_again` block ends."""
    known = sorted(set(filter(None, ids)))
    if known:
        structlog.contextvars.bind_contextvars(request_id=",".join(known))


def current_digest() -> str:
    """Return the digest of the request's signature or trigger, which identifies repeated requests.

    The digest is empty if repeats are detected in another way or can't occur.
    """
    return _digest.get()


def delivery_id() -> str:
    """Return the current request's ID as shown in the log, or an empty string outside a request."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def new_delivery_id() -> str:
    """Return a new ID for work that doesn't come from a signed request."""
    return uuid.uuid4().hex[:ID_CHARACTERS]
