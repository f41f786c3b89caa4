"""Automatic approval: changes that a policy allows without a decision."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.approvals.rules.policies import EVERY_FLOW, OF_EVERY_FLOW, FlowRules

# An id that no Slack user has, so that a rule's approvals can be counted.
RULE_ID = "rule:"
RULE_NAME = "an automatic rule"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The parts of a request that automatic approval checks.

    Attributes:
        requester_ids: The requester's user id and groups.
        lasts_seconds: How long each addition lasts from now, None for no end.
        takes_away: The request removes somebody, or makes access end sooner.
        starts_later: The request is for a later time.
    """

    requester_ids: Collection[str]
    lasts_seconds: Sequence[float | None] = ()
    takes_away: bool = False
    starts_later: bool = False


@dataclass(frozen=True, slots=True)
class ApprovedByRule:
    """The rule that approved a request, and how much of the daily allowance is used.

    `source` is the setting that defines the rule; `used` includes this request.
    """

    source: str
    longest_seconds: int
    used: int
    a_day: int


def is_automatic(rules: FlowRules, candidate: Candidate, used: int) -> bool:
    """Return True if the flow's rule approves a request.

    Args:
        rules: The flow's rules.
        candidate: The request.
        used: The number of the person's requests that the rule has already approved today.
    """
    rule = rules.auto
    if rule is None or used >= rule.a_day or candidate.starts_later:
        return False
    if set(rule.requesters).isdisjoint(candidate.requester_ids):
        return False
    if candidate.takes_away and not rules.auto_remove:
        return False
    longest = min(rule.longest_seconds, rules.longest_seconds or rule.longest_seconds)
    return all(seconds is not None and seconds <= longest for seconds in candidate.lasts_seconds)


def rule_id(rules: FlowRules, flow_key: str) -> str:
    """Return the id that counts the approvals of a flow's rule."""
    is_of_every_flow = rules.sources.get("auto") == OF_EVERY_FLOW
    return f"{RULE_ID}{EVERY_FLOW if is_of_every_flow else flow_key}"
