"""Logging with structlog: one line per event, without secrets.

Each line, and each entry in the audit log, has the ID of the Slack request that it belongs to.
"""

import hashlib
import logging
import sys
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars, get_contextvars

from bot.ops.redaction import Redactor

# Libraries that log too much. For Bolt, see `bolt_logger`.
QUIETER = {
    "slack_bolt": logging.ERROR,
    "slack_sdk": logging.WARNING,
    "aiohttp.access": logging.WARNING,
    "alembic": logging.WARNING,
    "aiosqlite": logging.WARNING,
}

ID_CHARACTERS = 12
_digest: ContextVar[str] = ContextVar("digest", default="")


def bolt_logger() -> logging.Logger:
    """Return a logger for Bolt that logs only errors."""
    logger = logging.getLogger("bolt")
    logger.setLevel(logging.ERROR)
    return logger


def configure_logs(level: str, style: str, redactor: Redactor) -> None:
    """Send all log records, including records from libraries, to stderr without secrets."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        without_secrets(redactor),
    ]
    render: structlog.typing.Processor = (
        # The form of Python's `repr` has no control characters, which could change the terminal.
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), repr_native_str=True)
        if style == "console"
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
    )
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Write Python warnings to the log too.
    logging.captureWarnings(capture=True)
    # By default, Python prints records that it can't format, including any secrets in them.
    logging.raiseExceptions = False
    for name, least in QUIETER.items():
        logging.getLogger(name).setLevel(max(least, root.level))


def without_secrets(
    redactor: Redactor,
) -> Callable[[Any, str, MutableMapping[str, Any]], MutableMapping[str, Any]]:
    """Return a processor that removes every secret from every part of a record."""

    def clean(value: object) -> object:
        if isinstance(value, str):
            return redactor.clean(value)
        if isinstance(value, dict):
            return {clean(key): clean(element) for key, element in value.items()}
        if isinstance(value, list | tuple):
            return [clean(element) for element in value]
        return value if isinstance(value, int | float | None) else redactor.clean(repr(value))

    def process(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Any:  # noqa: ANN401
        meta = {key: event[key] for key in ("_record", "_from_structlog") if key in event}
        rest = {key: clean(value) for key, value in event.items() if key not in meta}
        return {**rest, **meta}

    return process


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
