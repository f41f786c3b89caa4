"""Audit entries, before and after they are added to the chain, and verification results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

BOT = "gatehouse"
# The action for a refused attempt. The entry's subject is the missing permission.
REFUSED = "permission.refused"


@dataclass(frozen=True)
class AuditEntry:
    """An action to record, such as `request.approved`. The actor is a Slack user ID or `BOT`.

    The subject is a permission, a preset, or the ID of a request, flow or organization. The detail
    never includes a secret.
    """

    actor: str
    action: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedEntry:
    """An entry in the chain, with its position, time and hashes."""

    position: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
    previous_hash: str
    hash: str


@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    `broken_at` is the position of the first invalid or missing entry, or None if there is none.
    """

    entries: int
    head: str
    broken_at: int | None
    reason: str

    @property
    def is_intact(self) -> bool:
        """True if the verification found no problems."""
        return not self.reason

    def __str__(self) -> str:
        """Return the result as a sentence for operators."""
        if self.is_intact:
            return f"The audit log is intact: {self.entries} entries, head {self.head}."
        where = "" if self.broken_at is None else f" at entry {self.broken_at}"
        return f"The audit log is broken{where}: {self.reason}."
