"""What Slack sent and is being followed now: its id in logs, in what is stored, in the audit."""

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import structlog

ID_CHARACTERS = 12


@dataclass(slots=True)
class Delivery:
    """One request of Slack's.

    Attributes:
        digest: Of its signature, and so the same when the request is sent again; "" where what
            comes again is known otherwise, or cannot come.
        is_first: Whether no process has acted on it before; None until that was asked.
    """

    digest: str
    is_first: bool | None = None


_current: ContextVar[Delivery | None] = ContextVar("delivery", default=None)


@contextmanager
def following(signature: str = "") -> Iterator[None]:
    """Follow one request of Slack's; tasks that are started meanwhile follow it too."""
    digest = hashlib.sha256(signature.encode()).hexdigest() if signature else ""
    token = _current.set(Delivery(digest))
    try:
        with following_again(digest[:ID_CHARACTERS] or new_delivery_id()):
            yield
    finally:
        _current.reset(token)


@contextmanager
def following_again(*ids: str) -> Iterator[None]:
    """Go on with what was stored of requests, under their ids; those without one say nothing."""
    before = delivery_id()
    now_following(*ids)
    try:
        yield
    finally:
        structlog.contextvars.unbind_contextvars("request_id")
        now_following(before)


def now_following(*ids: str) -> None:
    """Let it be these requests until the end of `following_again`."""
    known = sorted(set(filter(None, ids)))
    if known:
        structlog.contextvars.bind_contextvars(request_id=",".join(known))


def current() -> Delivery | None:
    """Return the request that is being followed, if any."""
    return _current.get()


def delivery_id() -> str:
    """Return the id of the request that is being followed, as the log has it; "" for none."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def new_delivery_id() -> str:
    """Return an id for what nobody has signed."""
    return uuid.uuid4().hex[:ID_CHARACTERS]
