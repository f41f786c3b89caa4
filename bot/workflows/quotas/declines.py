"""Why the bot declines to call the inventory service now, in a sentence that says until when."""

import math
from datetime import UTC, datetime

from bot.errors import OrganizationBlocked, QuotaError, QuotaExhausted
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.quota import Blocked, Full, LimitKind
from bot.model.turns import OthersWait
from bot.store.quotas import NotNow
from bot.ui import text

LEAST_WAIT_SECONDS = 1.0

_USED_UP = {
    LimitKind.MINUTE: "Gatehouse has used all {allowed:,} calls per minute of {whose}.",
    LimitKind.DAY: "Gatehouse has used all {allowed:,} calls per day of {whose}.",
    LimitKind.CONCURRENT: "{allowed:,} calls of {whose} are already running, the most allowed.",
}

_OWN_USED_UP = "You've used {allowed:,} calls per minute of {whose}, the most for one person."
_STALLED = (
    "The inventory service isn't answering calls for {whose}, so Gatehouse makes one at a time."
)


def as_error(not_now: NotNow, key: OrganizationKey, name: str | None = None) -> QuotaError:
    """The error of a call that was not granted; `name` is the organization's, where it is known."""
    whose = f"{text.shorten(name, 60)} ({key.data_center})" if name else _whose(key)
    if isinstance(not_now.reason, Blocked):
        return _blocked(not_now.reason, whose, not_now.now)
    if isinstance(not_now.reason, OthersWait):
        return _others_wait(not_now.reason, whose, not_now.now)
    return _exhausted(not_now.reason, whose, not_now.now)


def _whose(key: OrganizationKey) -> str:
    """The organization without its name."""
    if not key.organization_id:
        return f"the data center {key.data_center}"
    return f"organization {key.organization_id} ({key.data_center})"


def _exhausted(full: Full, whose: str, now: float) -> QuotaExhausted:
    free_at = full.free_at if full.free_at is not None else now
    used = _used_up(full).format(allowed=full.allowed, whose=whose)
    latest = " at the latest" if full.kind is LimitKind.CONCURRENT else ""
    sentence = f"{used} Nothing was sent. The next slot is free {_when(free_at, now)}{latest}."
    return _quota_exhausted(sentence, full.kind, free_at, now)


def _used_up(full: Full) -> str:
    if full.is_stalled:
        return _STALLED
    return _OWN_USED_UP if full.is_of_person else _USED_UP[full.kind]


def _others_wait(others: OthersWait, whose: str, now: float) -> QuotaExhausted:
    free_at = max(others.free_at or now, now + LEAST_WAIT_SECONDS)
    sentence = (
        f"Other clients are waiting for {whose}. Nothing was sent."
        f" Your turn may come {_when(free_at, now)}."
    )
    return _quota_exhausted(sentence, LimitKind.MINUTE, free_at, now)


def _quota_exhausted(sentence: str, kind: LimitKind, free_at: float, now: float) -> QuotaExhausted:
    return QuotaExhausted(
        sentence, limit_kind=kind.value, free_at=_datetime(free_at), seconds=free_at - now
    )


def _blocked(blocked: Blocked, whose: str, now: float) -> OrganizationBlocked:
    code = int(blocked.code)
    again = (
        f"tries again {_when(blocked.until, now)}" if blocked.until > now else "is trying again now"
    )
    sentence = (
        f"The inventory service has blocked {whose} with code {code}."
        f" Gatehouse {again} and makes no calls until then."
    )
    return OrganizationBlocked(
        sentence, code=code, until=_datetime(blocked.until), seconds=blocked.until - now
    )


def _when(at: float, now: float) -> str:
    return f"in {text.duration(math.ceil(at - now))}"


def _datetime(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
