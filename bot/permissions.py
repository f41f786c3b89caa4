"""Who may do what: roles, permissions, and the one function that decides."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from itertools import chain

from bot.dataclass import dataclass
from bot.model.policies import FlowPolicy, FlowRules, flow_rules

EVERY_FULL_MEMBER = "*"


class Role(StrEnum):
    """The roles, each with all that the one before it may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Permission(StrEnum):
    """What a role allows; the value completes "You need the … role to …"."""

    ASK_FOR_HELP = "ask for help"
    READ = "see organizations, limits, lists and the email key"
    SEE_IDENTITIES = "see identities in full"
    REFRESH = "refresh, check or mute"
    REQUEST = "request or cancel changes to test users"
    DECIDE = "approve, deny or retry"
    OVERRIDE = "apply without approval"
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
# What these are for leaves something behind, so it is done once for one request of Slack's.
ACTING = frozenset(
    {
        Permission.REFRESH,
        Permission.REQUEST,
        Permission.DECIDE,
        Permission.OVERRIDE,
        Permission.SET_PLAN,
    }
)
HIGHEST_ROLE = tuple(Role)[-1]
RANK = {role: rank for rank, role in enumerate(Role)}

Roles = Mapping[Role, tuple[str, ...]]


@dataclass(frozen=True)
class Person:
    """Somebody who asks, as far as Slack could tell.

    Attributes:
        slack_user_id: `U…` or `W…`.
        name: What Slack shows; from people, so to be escaped.
        roles: The roles that they have, directly, by a group, or by `"*"`.
        groups: The user groups of `ROLES` and `FLOW_APPROVERS` that they are in.
        doubt: A sentence, when a group could not be looked up: what is not known is not granted.
        stranger: A sentence, when they are not of this workspace.
        came_by: The entry point: the command as it was typed, the button, the form.
        time_zone: The zone that Slack knows them in, such as `Europe/Berlin`.
    """

    slack_user_id: str
    name: str
    roles: frozenset[Role] = frozenset()
    groups: frozenset[str] = frozenset()
    doubt: str | None = None
    stranger: str | None = None
    came_by: str = field(default="", compare=False)
    time_zone: str = "UTC"

    @property
    def role(self) -> Role | None:
        """The highest role, or None."""
        return max(self.roles, key=RANK.__getitem__, default=None)


class Reason(StrEnum):
    """Why a decision went the way it did."""

    GRANTED = "granted"
    STRANGER = "stranger"
    UNKNOWN = "unknown"
    NO_ROLE = "no_role"
    ROLE_TOO_LOW = "role_too_low"
    NOT_AN_APPROVER_OF_THIS_FLOW = "not_an_approver_of_this_flow"
    OWN_REQUEST = "own_request"


@dataclass(frozen=True)
class Decision:
    """Whether a person may, and why.

    Attributes:
        reason: `GRANTED`, or why not.
        permission: What was asked for.
        holders: User ids, group ids or `"*"` of those who may.
        role: The least role that may, where a role decides.
        setting: Where the right is given.
    """

    reason: Reason
    permission: Permission
    holders: tuple[str, ...] = ()
    role: Role | None = None
    setting: str = "ROLES"

    @property
    def is_granted(self) -> bool:
        """Whether the person may."""
        return self.reason is Reason.GRANTED


@dataclass(frozen=True)
class Circumstances:
    """What a decision depends on besides the person.

    Attributes:
        approvers: The ids that alone may decide on this flow; None where no such list is set.
        requester: Whose request it is, when it is about deciding on one.
        allow_self: `ALLOW_SELF_APPROVAL`.
        setting: Where the list of approvers is set.
    """

    approvers: tuple[str, ...] | None = None
    requester: str | None = None
    allow_self: bool = False
    setting: str = "FLOW_APPROVERS"


NO_CIRCUMSTANCES = Circumstances()


def decide(
    person: Person,
    permission: Permission,
    roles: Roles,
    circumstances: Circumstances = NO_CIRCUMSTANCES,
) -> Decision:
    """Decide whether the person has the permission: for every command, button, modal and job.

    A list of approvers of a flow takes the place of the role: who is on it may decide on that
    flow, and nobody else.
    """
    holders = who_may(permission, roles, circumstances)
    role = LEAST_ROLE.get(permission)
    reason = _reason(person, permission, holders, circumstances)
    by_flow = permission is Permission.DECIDE and circumstances.approvers is not None
    setting = circumstances.setting if by_flow else "ROLES"
    return Decision(reason, permission, holders, role, setting)


def who_may(
    permission: Permission,
    roles: Roles,
    circumstances: Circumstances = NO_CIRCUMSTANCES,
) -> tuple[str, ...]:
    """Return the user ids, group ids and `"*"` that have the permission, each once, in order."""
    if permission is Permission.DECIDE and circumstances.approvers is not None:
        return circumstances.approvers
    least = LEAST_ROLE.get(permission)
    if least is None:
        return (EVERY_FULL_MEMBER,)
    named = (roles.get(role, ()) for role in Role if RANK[role] >= RANK[least])
    return tuple(dict.fromkeys(chain.from_iterable(named)))


def _reason(
    person: Person, permission: Permission, holders: Iterable[str], circumstances: Circumstances
) -> Reason:
    if person.stranger is not None:
        return Reason.STRANGER
    if permission not in LEAST_ROLE:
        return Reason.GRANTED
    if not _holds(person, permission, holders, circumstances):
        return _why_not(person, permission, circumstances)
    if person.slack_user_id == circumstances.requester and not circumstances.allow_self:
        return Reason.OWN_REQUEST
    return Reason.GRANTED


def _holds(
    person: Person, permission: Permission, holders: Iterable[str], circumstances: Circumstances
) -> bool:
    if permission is Permission.DECIDE and circumstances.approvers is not None:
        return not ({person.slack_user_id} | person.groups).isdisjoint(holders)
    least = RANK[LEAST_ROLE[permission]]
    return any(RANK[role] >= least for role in person.roles)


def _why_not(person: Person, permission: Permission, circumstances: Circumstances) -> Reason:
    if person.doubt is not None:
        return Reason.UNKNOWN
    if permission is Permission.DECIDE and circumstances.approvers is not None:
        return Reason.NOT_AN_APPROVER_OF_THIS_FLOW
    return Reason.ROLE_TOO_LOW if person.roles else Reason.NO_ROLE


@dataclass(frozen=True)
class Policy:
    """What the settings say about permissions.

    Attributes:
        roles: User ids, group ids and `"*"` by role.
        flow_approvers: Who alone may approve, by SID in capitals.
        flow_policies: What holds for flows, by SID in capitals or `"*"`.
        allow_self_approval: `ALLOW_SELF_APPROVAL`.
        access_contact: The user or group that people without a role are sent to.
    """

    roles: Roles = field(default_factory=dict)
    flow_approvers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    allow_self_approval: bool = False
    access_contact: str | None = None
    flow_policies: Mapping[str, FlowPolicy] = field(default_factory=dict)

    def groups(self) -> frozenset[str]:
        """Every user group that gives a right."""
        named = [*self.roles.values(), *self.approver_lists()]
        return frozenset(one for ids in named for one in ids if one.startswith("S"))

    def approver_lists(self) -> list[tuple[str, ...]]:
        """Every list of people who alone may approve for some flow."""
        policies = [one.approvers for one in self.flow_policies.values() if one.approvers]
        return [*self.flow_approvers.values(), *policies]

    def rules_of(self, flow_sid: str, approvals_needed: int = 1) -> FlowRules:
        """What holds for a flow; `approvals_needed` is the general setting."""
        key = flow_sid.upper()
        return flow_rules(key, self.flow_policies, self.flow_approvers, approvals_needed)

    def mentioned(self, flow_sid: str, requester: str) -> tuple[str, ...]:
        """Whom the card of somebody's request mentions: who may approve, unless a policy says whom.

        Those who may only because they are admins are left in peace, unless nobody else can.
        """
        rules = self.rules_of(flow_sid)
        if rules.notify is not None:
            return rules.notify
        if rules.approvers is not None:
            return rules.approvers
        approvers = self.roles.get(Role.APPROVER, ())
        others = [one for one in approvers if self.allow_self_approval or one != requester]
        return approvers if others else who_may(Permission.DECIDE, self.roles)
