"""The rules for a flow's requests: its own policy, the policy for all flows, and the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERY_FLOW = "*"
SETTING = "FLOW_POLICIES"
OF_THIS_FLOW, OF_EVERY_FLOW = f"{SETTING} (this flow)", f"{SETTING} (every flow)"


@dataclass(frozen=True)
class AutomaticRule:
    """The people whose requests are approved automatically, and the limits on these requests."""

    requesters: tuple[str, ...]
    longest_seconds: int
    a_day: int


@dataclass(frozen=True)
class FlowPolicy:
    """The settings in one entry of `FLOW_POLICIES`; None for a setting that the entry omits.

    Attributes:
        approvers: User and group ids; only they may approve.
        approvals_needed: The number of approvers that a request needs.
        notify: User and group ids that a card mentions.
        longest_seconds: The longest access that a request may ask for.
        escalate_after_seconds: The time after which a pending request is escalated.
        escalate_to: User and group ids that the escalation mentions.
        auto: The rule that approves additions automatically.
        auto_remove: True if the rule also approves removals.
    """

    approvers: tuple[str, ...] | None = None
    approvals_needed: int | None = None
    notify: tuple[str, ...] | None = None
    longest_seconds: int | None = None
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] | None = None
    auto: AutomaticRule | None = None
    auto_remove: bool | None = None


@dataclass(frozen=True)
class FlowRules:
    """The rules that apply to a flow, and the setting that each rule comes from.

    `approvers` is None if roles determine who may approve.
    """

    approvers: tuple[str, ...] | None = None
    approvals_needed: int = 1
    notify: tuple[str, ...] | None = None
    longest_seconds: int | None = None
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] = ()
    auto: AutomaticRule | None = None
    auto_remove: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)


def flow_rules(
    flow_key: str,
    policies: Mapping[str, FlowPolicy],
    flow_approvers: Mapping[str, tuple[str, ...]],
    approvals_needed: int,
) -> FlowRules:
    """Return the rules that apply to a flow.

    Args:
        flow_key: The flow's SID in capitals.
        policies: `FLOW_POLICIES`, by SID in capitals or `"*"`.
        flow_approvers: `FLOW_APPROVERS`, by SID in capitals.
        approvals_needed: `APPROVALS_NEEDED`.
    """
    layers = [
        (source, policies[key])
        for key, source in ((flow_key, OF_THIS_FLOW), (EVERY_FLOW, OF_EVERY_FLOW))
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
    """Return a sentence that explains why the duration is not allowed; None if it is allowed.

    `duration_seconds` is None for access with no end; `spelled_longest` is the limit as text.
    """
    if rules.longest_seconds is None:
        return None
    if duration_seconds is None:
        ends = f"Access to this flow must end, after at most {spelled_longest}."
        return f"{ends} Add, for example, “for {spelled_longest}”."
    if duration_seconds > rules.longest_seconds:
        return f"That's too long: access to this flow lasts at most {spelled_longest}."
    return None
