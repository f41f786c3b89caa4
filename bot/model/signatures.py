"""Signatures of what decides: who writes the database without the key can make none that holds."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime

PURPOSE = b"gatehouse: stored rows, version 1"


class Seal:
    """Signs stored rows, and tells whether a signature holds.

    Args:
        key: `AUDIT_KEY`; without one nothing is signed, and everything holds.
    """

    def __init__(self, key: bytes | None) -> None:
        # Not the key of the chain itself: what is signed for one purpose is no use for another.
        self._key = None if key is None else hmac.new(key, PURPOSE, hashlib.sha256).digest()

    @property
    def is_set(self) -> bool:
        """Whether rows are signed at all."""
        return self._key is not None

    def sign(self, table: str, values: Mapping[str, object]) -> str | None:
        """Return the signature of a row: these columns of that table, and nothing else."""
        if self._key is None:
            return None
        text = json.dumps([table, dict(values)], sort_keys=True, default=_exact)
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def holds(self, table: str, values: Mapping[str, object], signature: str | None) -> bool:
        """Return whether a row is as it was signed."""
        expected = self.sign(table, values)
        return expected is None or hmac.compare_digest(expected, signature or "")


NO_SEAL = Seal(None)


def _exact(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"cannot sign a {type(value).__name__}")
