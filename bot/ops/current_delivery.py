"""Tracks the current Slack request, whose ID appears in logs and in the audit log."""

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from structlog.contextvars import bound_contextvars, get_contextvars

ID_CHARACTERS = 12
_digest: ContextVar[str] = ContextVar("digest", default="")


@contextmanager
def following(key: str) -> Iterator[None]:
    """Set the current Slack request, also for tasks started in the `with` block.

    `key` is the same for repeats of a request. It's empty if repeats are detected in another way.
    """
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest() if key else ""
    token = _digest.set(digest)
    try:
        with bound_contextvars(request_id=(digest or uuid.uuid4().hex)[:ID_CHARACTERS]):
            yield
    finally:
        _digest.reset(token)


def current_digest() -> str:
    """Return the digest of the request's signature or trigger, which identifies repeated requests.

    The digest is empty if repeats are detected in another way or can't occur.
    """
    return _digest.get()


def delivery_id() -> str:
    """Return the current request's ID as shown in the log, or an empty string outside a request."""
    return str(get_contextvars().get("request_id", ""))
