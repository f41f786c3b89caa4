"""Logs as in production, into a text that a test reads.

pytest's own capturing changes `sys.stderr` between the phases of a test, so it is not used.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from bot.ops.logs import configure_logs
from bot.ops.redaction import Redactor


def log_into(stream: io.StringIO, level: str, style: str, redactor: Redactor) -> None:
    """Configure the logs, and let them go where a test can read them."""
    configure_logs(level, style, redactor)
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Put everything back that `configure_logs` changes."""
    root, loud = logging.getLogger(), logging.raiseExceptions
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        structlog.configure(**configured)
        root.handlers[:], logging.raiseExceptions = handlers, loud
        root.setLevel(level)
