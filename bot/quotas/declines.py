"""Explains why Gatehouse won't call the inventory service now, and when it will."""

import math
from datetime import UTC, datetime

from bot.errors import OrganizationBlocked, QuotaError, QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import Blocked, Full, LimitKind, Scope
from bot.quotas.store.ledger import NotNow
from bot.slack.messages import text

_USED_UP = {
    LimitKind.MINUTE: "Gatehouse has used all {allowed:,} calls per minute of {whose}.",
    LimitKind.DAY: "Gatehouse has used all {allowed:,} calls per day of {whose}.",
    LimitKind.CONCURRENT: "{allowed:,} calls of {whose} are already running, the most allowed.",
}

_PERSON_USED_UP = "You've used {allowed:,} calls per minute of {whose}, the most for one person."
_SHARE_USED_UP = {
    LimitKind.MINUTE: "This client has used its share of {whose}: {allowed:,} calls per minute.",
    LimitKind.DAY: "This client has used its share of {whose}: {allowed:,} calls per day.",
    LimitKind.CONCURRENT: (
        "This client's share of {whose} is {allowed:,} calls at once, and they are running."
    ),
}
_STALLED = (
    "The inventory service isn't answering calls for {whose}, so Gatehouse makes one at a time."
)


def as_error(not_now: NotNow, key: OrganizationKey, name: str | None = None) -> QuotaError:
    """Return the error for a call that was not granted; `name` is the organization's, if known."""
    target = f"{text.shorten(name, 60)} ({key.data_center})" if name else _whose(key)
    if isinstance(not_now.reason, Blocked):
        return _blocked(not_now.reason, target, not_now.now)
    return _exhausted(not_now.reason, target, not_now.now)


def _whose(key: OrganizationKey) -> str:
    if not key.organization_id:
        return f"the data center {key.data_center}"
    return f"organization {key.organization_id} ({key.data_center})"


def _exhausted(full: Full, target: str, now: float) -> QuotaExhausted:
    free_at = full.free_at if full.free_at is not None else now
    used = _used_up(full).format(allowed=full.allowed, whose=target)
    latest = " at the latest" if full.kind is LimitKind.CONCURRENT else ""
    sentence = f"{used} Nothing was sent. The next slot is free {_when(free_at, now)}{latest}."
    return QuotaExhausted(
        sentence, limit_kind=full.kind.value, free_at=_datetime(free_at), seconds=free_at - now
    )


def _used_up(full: Full) -> str:
    if full.is_stalled:
        return _STALLED
    if full.scope is Scope.CLIENT:
        return _SHARE_USED_UP[full.kind]
    return _PERSON_USED_UP if full.scope is Scope.PERSON else _USED_UP[full.kind]


def _blocked(blocked: Blocked, target: str, now: float) -> OrganizationBlocked:
    code = int(blocked.code)
    again = (
        f"tries again {_when(blocked.until, now)}" if blocked.until > now else "is trying again now"
    )
    sentence = (
        f"The inventory service has blocked {target} with code {code}."
        f" Gatehouse {again} and makes no calls until then."
    )
    return OrganizationBlocked(
        sentence, code=code, until=_datetime(blocked.until), seconds=blocked.until - now
    )


def _when(at: float, now: float) -> str:
    return f"in {text.duration(math.ceil(at - now))}"


def _datetime(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
