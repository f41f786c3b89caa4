"""Roles, permissions, and the function that makes every permission decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import chain

from bot.approvals.rules import EVERY_FLOW, OF_EVERY_FLOW, OF_THIS_FLOW, FlowPolicy, FlowRules

EVERY_FULL_MEMBER = "*"


class Role(StrEnum):
    """A role. Each role includes all permissions of the roles before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Permission(StrEnum):
    """A permission that roles grant. The value completes "You need the … role to …"."""

    ASK_FOR_HELP = "ask for help"
    READ = "see organizations, limits or test users, or check the email key"
    SEE_IDENTITIES = "see identities in full"
    REFRESH = "refresh lists, check limits or mute alerts"
    REQUEST = "request or cancel changes to test users"
    DECIDE = "approve, deny or retry changes"
    OVERRIDE = "apply changes without approval"
    SET_PLAN = "change a plan"
    READ_AUDIT = "read the audit log"


LEAST_ROLE: Mapping[Permission, Role] = {
    Permission.READ: Role.VIEWER,
    Permission.SEE_IDENTITIES: Role.OPERATOR,
    Permission.REFRESH: Role.OPERATOR,
    Permission.REQUEST: Role.OPERATOR,
    Permission.DECIDE: Role.APPROVER,
    Permission.OVERRIDE: Role.ADMIN,
    Permission.SET_PLAN: Role.ADMIN,
    Permission.READ_AUDIT: Role.ADMIN,
}
# Permissions for lasting changes. Each Slack request can use them only once.
ACTING = frozenset(
    {
        Permission.REFRESH,
        Permission.REQUEST,
        Permission.DECIDE,
        Permission.OVERRIDE,
        Permission.SET_PLAN,
    }
)
RANK = {role: rank for rank, role in enumerate(Role)}

Roles = Mapping[Role, tuple[str, ...]]


@dataclass(frozen=True)
class Person:
    """A person, as identified by Slack. Escape `name`, because people choose their own names.

    `groups` contains the person's user groups that appear in the settings. If a group couldn't be
    looked up, `doubt` is a sentence that says so. If the person can't use Gatehouse at all,
    `stranger` is a sentence that explains why.
    """

    slack_user_id: str
    name: str
    roles: frozenset[Role] = frozenset()
    groups: frozenset[str] = frozenset()
    doubt: str | None = None
    stranger: str | None = None
    time_zone: str = "UTC"

    @property
    def role(self) -> Role | None:
        """The person's highest role, or None if the person has no role."""
        return max(self.roles, key=RANK.__getitem__, default=None)


class Reason(StrEnum):
    """The reason for a permission decision."""

    GRANTED = "granted"
    STRANGER = "stranger"
    UNKNOWN = "unknown"
    NO_ROLE = "no_role"
    ROLE_TOO_LOW = "role_too_low"
    NOT_AN_APPROVER_OF_THIS_FLOW = "not_an_approver_of_this_flow"
    NOT_A_REQUESTER_OF_THIS_FLOW = "not_a_requester_of_this_flow"
    OWN_REQUEST = "own_request"


@dataclass(frozen=True)
class Decision:
    """A permission decision. The setting named `setting` gives `holders` the permission."""

    reason: Reason
    permission: Permission
    holders: tuple[str, ...] = ()
    role: Role | None = None
    setting: str = "ROLES"

    @property
    def is_granted(self) -> bool:
        """True if the person has the permission."""
        return self.reason is Reason.GRANTED


@dataclass(frozen=True)
class Policy:
    """The permissions defined in the settings. Flows are keyed by uppercase SID or `"*"`."""

    roles: Roles = field(default_factory=dict)
    allow_self_approval: bool = False
    access_contact: str | None = None
    flow_policies: Mapping[str, FlowPolicy] = field(default_factory=dict)
    approvals_needed: int = 1

    def judge(
        self,
        person: Person,
        permission: Permission,
        flow_sid: str | None = None,
        requester: str | None = None,
    ) -> Decision:
        """Decide whether a person has a permission. Used by all commands, buttons, modals and jobs.

        A flow's approver list replaces the approver role: only people on the list can approve, deny
        or retry the flow's changes. A flow's list of requesters limits who can ask for its changes.
        Pass `requester` if the action concerns that person's request.
        """
        rules = self.of_flow(flow_sid) if flow_sid else FlowRules()
        named = {person.slack_user_id} | person.groups
        role, held = LEAST_ROLE.get(permission), person.role
        holds = role is None or (held is not None and RANK[held] >= RANK[role])
        holders, setting = self.with_role[permission], "ROLES"
        lacks = Reason.ROLE_TOO_LOW if person.roles else Reason.NO_ROLE
        if permission is Permission.DECIDE and rules.approvers is not None:
            holders, setting = rules.approvers, rules.sources["approvers"]
            holds, lacks = not named.isdisjoint(holders), Reason.NOT_AN_APPROVER_OF_THIS_FLOW
        # Only the flow's requesters among the people with the role can ask for its changes.
        elif permission is Permission.REQUEST and holds and rules.requesters is not None:
            holders, setting = rules.requesters, rules.sources["requesters"]
            holds, lacks = not named.isdisjoint(holders), Reason.NOT_A_REQUESTER_OF_THIS_FLOW
        is_own = person.slack_user_id == requester and not self.allow_self_approval
        if person.stranger is not None:
            reason = Reason.STRANGER
        elif holds:
            reason = Reason.OWN_REQUEST if is_own and role is not None else Reason.GRANTED
        else:
            reason = lacks if person.doubt is None else Reason.UNKNOWN
        return Decision(reason, permission, holders, role, setting)

    @cached_property
    def with_role(self) -> dict[Permission, tuple[str, ...]]:
        """The IDs of the users and groups (or `"*"`) with a role that grants each permission."""
        everybody = (EVERY_FULL_MEMBER,)
        holders: dict[Permission, tuple[str, ...]] = dict.fromkeys(Permission, everybody)
        for permission, least in LEAST_ROLE.items():
            named = [self.roles.get(role, ()) for role in Role if RANK[role] >= RANK[least]]
            holders[permission] = tuple(dict.fromkeys(chain(*named)))
        return holders

    def approvers(self, flow_sid: str) -> tuple[str, ...]:
        """Return the IDs of the users and groups that can decide on a flow's requests."""
        own = self.of_flow(flow_sid).approvers
        return self.with_role[Permission.DECIDE] if own is None else own

    @cached_property
    def groups(self) -> frozenset[str]:
        """All user groups to which the settings grant a role or permission."""
        holders = set(chain(*self.roles.values()))
        for policy in self.flow_policies.values():
            holders.update(policy.approvers or (), policy.automatic or (), policy.requesters or ())
        return frozenset(holder for holder in holders if holder.startswith("S"))

    def of_flow(self, flow_sid: str) -> FlowRules:
        """Return a flow's rules. The flow's policy overrides the general policy and settings."""
        return self._rules.get(flow_sid.upper()) or self._rules[""]

    @cached_property
    def _rules(self) -> dict[str, FlowRules]:
        """The rules in force for the flows with a policy. The others have those of `""`."""
        general = FlowPolicy(approvals_needed=self.approvals_needed)
        of_every = self.flow_policies.get(EVERY_FLOW, FlowPolicy())
        rules = FlowRules().under(general, "APPROVALS_NEEDED").under(of_every, OF_EVERY_FLOW)
        own = {sid: rules.under(policy, OF_THIS_FLOW) for sid, policy in self.flow_policies.items()}
        return {"": rules, **own}

    def mentioned(self, flow_sid: str) -> tuple[str, ...]:
        """Return the IDs to mention on a card: the flow's `notify` list, or else the approvers.

        Admins are mentioned only if there are no approvers.
        """
        rules = self.of_flow(flow_sid)
        if rules.notify is not None:
            return rules.notify
        if rules.approvers is not None:
            return rules.approvers
        return self.roles.get(Role.APPROVER) or self.with_role[Permission.DECIDE]
