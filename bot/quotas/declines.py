"""The errors for calls that the guard declines, with the reason and the time to ask again."""

import math
from itertools import pairwise

from bot.errors import OrganizationBlocked, QuotaError, QuotaExhausted
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LimitKind, Source
from bot.quotas.rules.quota import NotNow
from bot.slack.messages import text

# Why Gatehouse allows fewer calls than the service. The share has a sentence of its own.
_LEFT = {
    Source.REFUSAL: "left unused because the service refused calls",
    Source.RESERVE: "reserved for other programs",
    Source.PEOPLE: "kept for people",
    Source.RESET: "held back until the service reports on its new day",
    Source.STALL: "held back while the service doesn't respond",
    Source.SHARE: "left to other clients",
}


def decline_error(decline: NotNow, key: OrganizationKey) -> QuotaError:
    """Return the error for a declined call."""
    whose = f"the data center {key.data_center}"
    if key.organization_id:
        whose = f"organization {key.organization_id} ({key.data_center})"
    service = "The inventory service"
    if key.is_api:
        service = whose = key.service
    seconds = decline.free_at - decline.now
    when = text.duration(math.ceil(seconds))
    if decline.code is not None:
        later = f"will try again in {when} and won't make any calls until then"
        blocked = f"{service} has blocked {whose} with code {decline.code:d}."
        if key.is_api:
            blocked = f"{service} is receiving too many requests."
            later = f"won't make any calls for {when}"
        sentence = f"{blocked} Gatehouse {later if seconds > 0 else 'is trying again now'}."
        return OrganizationBlocked(sentence, decline.code, seconds)
    limit = decline.limits[-1]
    kind = limit.kind
    calls = f"{text.count(limit.most, 'call')} {kind.unit}"
    # Other clients may have made some of these calls.
    reached = f"Gatehouse's limit of {calls} for {whose} has been reached."
    if limit.source is Source.SHARE:
        reached = f"This client has used its share of the calls for {whose}: {calls}."
    latest = " at the latest" if kind is LimitKind.CONCURRENT else ""
    sentence = (
        f"{reached}{_reduced(decline)} Nothing was sent. The next slot will be free in"
        f" {when}{latest}."
    )
    return QuotaExhausted(sentence, limit_kind=kind.value, seconds=seconds)


def _reduced(decline: NotNow) -> str:
    """Return a sentence about what leaves fewer calls than the service allows, if anything does."""
    reasons = []
    for looser, limit in pairwise(decline.limits):
        number = looser.most - limit.most
        if number and limit.source in _LEFT:
            verb = "is" if number == 1 else "are"
            reasons.append(f"{number:,} {verb} {_LEFT[limit.source]}")
    if not reasons:
        return ""
    return f" Of {decline.limits[0].most:,}, {', '.join(reasons)}."
