"""The people, groups, channels and roles that the sandbox starts with."""

from dataclasses import dataclass, field

TEAM_ID = "T0GATEHOUSE"
OTHER_TEAM_ID = "T0OTHER"
TEAM_DOMAIN = "gatehouse-sandbox"

BOT_USER_ID = "U0GATEHOUSE"
BOT_ID = "B0GATEHOUSE"
APP_ID = "A0GATEHOUSE"


@dataclass
class Person:
    """A person in the workspace, with the flags that `users.info` returns."""

    id: str
    handle: str
    name: str
    role: str
    team_id: str = TEAM_ID
    tz: str = "Europe/Berlin"
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_bot: bool = False
    deleted: bool = False


@dataclass
class Group:
    """A user group and the IDs of its members."""

    id: str
    handle: str
    name: str
    members: list[str] = field(default_factory=list)


@dataclass
class Channel:
    """A channel, or a direct message conversation between `partner` and the bot."""

    id: str
    name: str
    is_private: bool = False
    is_archived: bool = False
    members: set[str] = field(default_factory=set)
    is_ext_shared: bool = False
    is_org_shared: bool = False
    partner: str | None = None

    @property
    def is_direct(self) -> bool:
        """True if this is a direct message conversation with the bot."""
        return self.partner is not None


ROLES: dict[str, list[str]] = {
    "viewer": ["U0VIEWER"],
    "operator": ["U0OPERATOR", "S0TESTERS"],
    "approver": ["U0APPROVER", "S0APPROVERS"],
    "admin": ["U0ADMIN"],
}

SEE_IDENTITIES = frozenset({"operator", "approver", "admin"})


def default_people() -> list[Person]:
    """Return at least one person for each role, and three people whom the bot must refuse."""
    return [
        Person("U0OPERATOR", "otto", "Otto Operator", "operator"),
        Person("U0APPROVER", "ada", "Ada Approver", "approver"),
        Person("U0APPROVER2", "abel", "Abel Approver", "approver", tz="America/New_York"),
        Person("U0ADMIN", "adam", "Adam Admin", "admin"),
        Person("U0VIEWER", "vera", "Vera Viewer", "viewer", tz="Asia/Tokyo"),
        Person("U0NOROLE", "nora", "Nora Norole", "no role"),
        Person("U0GUEST", "gus", "Gus Guest", "guest", is_restricted=True),
        Person("U0STRANGER", "stan", "Stan Stranger", "other workspace", team_id=OTHER_TEAM_ID),
    ]


def default_groups() -> list[Group]:
    """Return a group of approvers, and a group whose requests can be approved automatically."""
    return [
        Group("S0APPROVERS", "approvers", "Approvers", ["U0APPROVER2"]),
        Group("S0TESTERS", "testers", "Testers", ["U0OPERATOR"]),
    ]


def default_channels() -> list[Channel]:
    """Return the three channels. The bot is a member of #approvals and #alerts.

    Requests in #approvals show full identities, so only people who may see identities are members.
    """
    full = {person.id for person in default_people() if person.team_id == TEAM_ID}
    full -= {"U0GUEST"}
    trusted = {person.id for person in default_people() if person.role in SEE_IDENTITIES}
    return [
        Channel("C0GENERAL", "general", members=full | {"U0GUEST", "U0STRANGER"}),
        Channel("C0APPROVALS", "approvals", is_private=True, members=trusted | {BOT_USER_ID}),
        Channel("C0ALERTS", "alerts", members=full | {BOT_USER_ID}),
    ]
