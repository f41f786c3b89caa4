"""An entry of the audit, before and after it is in the chain, and what verifying found."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from bot.dataclass import dataclass

BOT = "gatehouse"
# What somebody without the permission wanted; the subject is the permission.
REFUSED = "permission.refused"
REFUSALS = frozenset({REFUSED, "request.refused"})


@dataclass(frozen=True)
class AuditEntry:
    """What is to be remembered.

    Attributes:
        actor: Slack user id, or `BOT`.
        action: A verb with its topic, such as `request.approved`.
        subject: What it was about: a request id, a flow SID, an organization, a permission.
        detail: Anything JSON can say; never a secret.
    """

    actor: str
    action: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedEntry:
    """An entry as it stands in the chain."""

    position: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
    previous_hash: str
    hash: str


@dataclass(frozen=True)
class Verdict:
    """What `verify` found: `broken_at` is the first position that does not hold, None if all do."""

    entries: int
    head: str
    broken_at: int | None = None
    reason: str = ""

    @property
    def is_intact(self) -> bool:
        """Whether every entry holds."""
        return self.broken_at is None and not self.reason
