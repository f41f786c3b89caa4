"""Why the bot declines to call the inventory service now, in a sentence that says until when."""

import math
from datetime import UTC, datetime

from bot.errors import OrganizationBlocked, QuotaError, QuotaExhausted
from bot.model.organization import OrganizationKey
from bot.model.quota import Blocked, Full, LimitKind
from bot.store.quotas import NotNow
from bot.ui import text

_USED_UP = {
    LimitKind.MINUTE: "All {allowed:,} calls of this minute are used. The next slot is free",
    LimitKind.DAY: "All {allowed:,} calls of this day are used. The next slot is free",
    LimitKind.CONCURRENT: (
        "{allowed:,} calls are running, and no more are allowed at once. The next one can go at the"
        " latest"
    ),
}


def as_error(not_now: NotNow, key: OrganizationKey) -> QuotaError:
    """The error to raise for a call that was not granted."""
    if isinstance(not_now.reason, Blocked):
        return _blocked(not_now.reason, key, not_now.now)
    return _exhausted(not_now.reason, key, not_now.now)


def whose(key: OrganizationKey) -> str:
    """The organization in words."""
    if not key.organization_id:
        return f"the data center {key.data_center}"
    return f"organization {key.organization_id} ({key.data_center})"


def _exhausted(full: Full, key: OrganizationKey, now: float) -> QuotaExhausted:
    free_at = full.free_at if full.free_at is not None else now
    used = _USED_UP[full.kind].format(allowed=full.allowed)
    sentence = f"{used} {_when(free_at, now)}. Nothing was sent for {whose(key)}."
    return QuotaExhausted(sentence, limit_kind=full.kind.value, free_at=_datetime(free_at))


def _blocked(blocked: Blocked, key: OrganizationKey, now: float) -> OrganizationBlocked:
    code = int(blocked.code)
    again = (
        f"Gatehouse itself tries again {_when(blocked.until, now)}"
        if blocked.until > now
        else "Gatehouse itself is trying again now"
    )
    sentence = f"The service blocks {whose(key)} (code {code}). {again}; until then nobody calls."
    return OrganizationBlocked(sentence, code=code, until=_datetime(blocked.until))


def _when(at: float, now: float) -> str:
    return f"in {text.duration(math.ceil(at - now))}, at {_datetime(at):%H:%M:%S} UTC"


def _datetime(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
