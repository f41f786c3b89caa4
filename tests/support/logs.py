"""Sets up logging as in production, but writes the logs to a buffer that tests can read.

Tests of the logs can't use pytest's output capture, because pytest replaces `sys.stderr` between
the phases of a test.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from bot.ops.logs import configure_logs
from bot.ops.redaction import Redactor


def log_into(stream: io.StringIO, level: str, style: str, redactor: Redactor) -> None:
    """Configure logging, and write the logs to `stream`."""
    configure_logs(level, style, redactor)
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)


@contextmanager
def logging_as_before() -> Iterator[None]:
    """At the end of the block, restore everything that `configure_logs` changes."""
    root, loud = logging.getLogger(), logging.raiseExceptions
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        structlog.configure(**configured)
        root.handlers[:], logging.raiseExceptions = handlers, loud
        root.setLevel(level)
