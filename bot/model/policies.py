"""What holds for a flow's requests: its own policy, that of all flows, the general settings."""

from collections.abc import Mapping
from dataclasses import field

from bot.dataclass import dataclass

EVERY_FLOW = "*"
SETTING = "FLOW_POLICIES"


@dataclass(frozen=True)
class FlowPolicy:
    """What `FLOW_POLICIES` says of one flow, or of all; None where it says nothing.

    Attributes:
        approvers: User and group ids who alone may approve.
        approvals_needed: How many of them have to.
        notify: User and group ids that a card mentions.
        longest_seconds: The longest time that somebody may be added for.
        escalate_after_seconds: When a request that still waits is escalated.
        escalate_to: User and group ids that are mentioned then.
    """

    approvers: tuple[str, ...] | None = None
    approvals_needed: int | None = None
    notify: tuple[str, ...] | None = None
    longest_seconds: int | None = None
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] | None = None


@dataclass(frozen=True)
class FlowRules:
    """What holds for a flow in the end, with the setting that each of it comes from.

    `approvers` is None where the roles say who may approve.
    """

    approvers: tuple[str, ...] | None = None
    approvals_needed: int = 1
    notify: tuple[str, ...] | None = None
    longest_seconds: int | None = None
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


def flow_rules(
    flow_key: str,
    policies: Mapping[str, FlowPolicy],
    flow_approvers: Mapping[str, tuple[str, ...]],
    approvals_needed: int,
) -> FlowRules:
    """Return what holds for a flow.

    Args:
        flow_key: The flow's SID in capitals.
        policies: `FLOW_POLICIES`, by SID in capitals or `"*"`.
        flow_approvers: `FLOW_APPROVERS`, by SID in capitals.
        approvals_needed: `APPROVALS_NEEDED`.
    """
    layers = [
        (f"{SETTING} ({where})", policies[key])
        for key, where in ((flow_key, "this flow"), (EVERY_FLOW, "every flow"))
        if key in policies
    ]
    general = FlowPolicy(flow_approvers.get(flow_key), approvals_needed)
    sources: dict[str, str] = {}
    found: dict[str, object] = {}
    for name in FlowPolicy.__dataclass_fields__:
        for source, layer in (*layers, (_GENERAL.get(name, ""), general)):
            value = getattr(layer, name)
            if value is not None:
                found[name], sources[name] = value, source
                break
    return FlowRules(**found, sources=sources)  # type: ignore[arg-type]


_GENERAL = {"approvers": "FLOW_APPROVERS", "approvals_needed": "APPROVALS_NEEDED"}


def duration_problem(
    rules: FlowRules, duration_seconds: float | None, spelled_longest: str
) -> str | None:
    """Why people cannot be added for so long, as a sentence; None when they can.

    `duration_seconds` is None for access with no end, `spelled_longest` the limit for people.
    """
    if rules.longest_seconds is None:
        return None
    if duration_seconds is None:
        return f"Access to this flow needs an end: add “for …”, at most {spelled_longest}."
    if duration_seconds > rules.longest_seconds:
        return f"That's too long: access to this flow lasts at most {spelled_longest}."
    return None
