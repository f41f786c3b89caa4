"""Defines the type, default value and example of each setting."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from yarl import URL

from bot.approvals.parse import parse_duration
from bot.approvals.rules import EVERY_FLOW, AutomaticRule, FlowPolicy
from bot.ops.secrets import CONTROL, is_loopback
from bot.permissions import Policy, Role
from bot.store.postgres import SCHEMES, AddressError, connection_parameters

FLOW_SID = r"FW[0-9a-fA-F]{32}"
DataCenter = Literal["com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa"]
Service = Literal["inventory", "flow", "email"]
DATA_CENTERS: tuple[str, ...] = get_args(DataCenter)
# The settings that each service needs.
SERVICES: dict[Service, tuple[str, ...]] = {
    "inventory": ("INVENTORY_DATA_CENTERS",),
    "flow": ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN"),
    "email": ("EMAIL_BASE_URL", "EMAIL_API_KEY"),
}


def _like(pattern: str, problem: str) -> BeforeValidator:
    """Return a validator that reports `problem` if a string doesn't match the pattern."""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise ValueError(problem)
        return value

    return BeforeValidator(check)


def _from_json(value: object) -> object:
    """Parse a string as JSON, or return any other value unchanged."""
    if not isinstance(value, str):
        return value

    def without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # By default, `json` silently keeps only the last value of a repeated name.
        for name, times in Counter(name for name, _ in pairs).items():
            if times > 1:
                raise ValueError(f"contains “{name}” twice")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=without_repetitions)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("contains JSON that is nested too deeply") from None


def _safe_address(value: str) -> str:
    """Return the URL if it uses HTTPS, or HTTP on this machine. Raise ValueError for other URLs."""
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("is not a valid address") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("must be an address that starts with https://")
    if url.scheme == "http" and not is_loopback(url.host):
        raise ValueError("must start with https:// (http:// is allowed only for localhost)")
    if url.user or url.password or url.query_string or url.fragment:
        raise ValueError("must not contain a username, password, query or fragment")
    return value


def _database_address(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if separator and scheme.lower() in SCHEMES:
        try:
            connection_parameters(value)
        except AddressError as error:
            raise ValueError(str(error)) from None
    elif scheme != "sqlite" or not rest.startswith("/") or rest == "/" or ":memory:" in rest:
        raise ValueError("must start with postgresql:// or be sqlite:///<file>")
    elif "?" in rest:
        raise ValueError("has parameters, which SQLite doesn't support")
    return value


def _seconds(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError('must be a duration such as "2h" or "7d"')
    return seconds


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


# The specification capitalizes plan names ("Free"), so ignore case.
Plan = Annotated[
    Literal["free", "standard", "professional", "premium", "enterprise"], BeforeValidator(_lower)
]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# The same length limit applies to organizations that the service lists.
OrganizationId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]{1,64}$")]
OrganizationPath = Annotated[
    str, Field(max_length=80, pattern=rf"^({'|'.join(map(re.escape, DATA_CENTERS))})/.*\S")
]
Address = Annotated[str, AfterValidator(_safe_address)]
FlowAddress = Annotated[Address, _like(r"(?!.*/v2/*$).*", "must not end with /v2")]
EmailAddress = Annotated[Address, _like(r"(?!.*/v3/*$).*", "must not end with /v3")]
Hours = Annotated[float, Field(gt=0, lt=24 * 366)]
ChannelId = Annotated[str, Field(pattern=r"^[CGD][A-Za-z0-9_]+$")]
SlackId = Annotated[str, _like(r"\*|[UWS]\w*", "is not a user ID (U…, W…), a group ID (S…) or *")]
NamedId = Annotated[SlackId, _like(r"(?!\*$).*", "* is not allowed here: list people or groups")]
NamedIds = Annotated[tuple[NamedId, ...], Field(min_length=1)]
ReservePath = Literal["*"] | OrganizationPath
Duration = Annotated[int, BeforeValidator(_seconds)]
Port = Annotated[int, Field(ge=0, le=65535)]
Alias = Annotated[str, Field(pattern=r"^[^\s\"',]{1,50}$")]
FlowSid = Annotated[str, Field(pattern=f"^{FLOW_SID}$")]
ClientName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
DatabaseUrl = Annotated[SecretStr, BeforeValidator(_database_address)]
HeaderTemplate = Annotated[str, _like(r".*\{token\}.*", "must contain {token}")]
BotToken = Annotated[SecretStr, _like("xoxb-.*", "must start with xoxb-")]
AppToken = Annotated[SecretStr, _like("xapp-.*", "must start with xapp-")]
SigningSecret = Annotated[
    SecretStr,
    _like(r"(?!xox|xapp-)[^ ]*", "isn't a signing secret: copy it from Basic Information"),
]
EmailAuth = Annotated[
    Literal["bearer", "basic"],
    _like(
        "bearer|basic",
        "must be bearer or basic: support for account passwords ended in Q4 2020",
    ),
]
Json = BeforeValidator(_from_json)
Secret = Annotated[
    SecretStr,
    Field(min_length=1),
    _like(f"[^{CONTROL.pattern[1:-1]}]*", "contains a control character in a credential"),
]


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's value, or None if it isn't set."""
    return None if secret is None else secret.get_secret_value()


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OAuthSettings(_Part):
    """A data center's OAuth client and refresh token (RFC 6749)."""

    client_id: str = Field(min_length=1)
    client_secret: Secret
    refresh_token: Secret
    token_url: Address


class DataCenterSettings(_Part):
    """A data center's settings: an authtoken or OAuth credentials, and optional fields."""

    authtoken: Secret | None = None
    oauth: OAuthSettings | None = None
    base_url: Address | None = None
    organization_id: OrganizationId | None = None

    @model_validator(mode="after")
    def _one_credential(self) -> "DataCenterSettings":
        if (self.authtoken is None) == (self.oauth is None):
            raise ValueError("needs exactly one of authtoken and oauth")
        return self


class AutomaticSettings(_Part):
    """A rule for automatic approval: who can use it, for how long, and how often per day."""

    requesters: NamedIds = Field(alias="from")
    longest_seconds: Duration = Field(alias="longest")
    a_day: int = Field(ge=1, le=1000)


class FlowPolicySettings(_Part):
    """The policy for a flow's requests. All keys are optional."""

    approvers: NamedIds | None = None
    approvals_needed: int = Field(default=0, ge=1, le=20)
    notify: NamedIds | None = None
    longest_seconds: Duration | None = Field(default=None, alias="longest")
    escalate_after_seconds: Duration | None = Field(default=None, alias="escalate_after")
    escalate_to: NamedIds | None = None
    auto: AutomaticSettings | None = None
    auto_remove: bool | None = None

    @property
    def policy(self) -> FlowPolicy:
        """The policy that these settings define."""
        auto = AutomaticRule(**dict(self.auto)) if self.auto else None
        return FlowPolicy(**{**dict(self), "auto": auto})


class ReserveSettings(_Part):
    """Calls per minute and per day that are reserved for programs that don't use Gatehouse."""

    minute: int = Field(default=0, ge=0, lt=100)
    day: int = Field(default=0, ge=0)


class ClientSettings(_Part):
    """A gateway client. The settings contain the SHA-256 hash of the client's token."""

    token_sha256: Annotated[
        str, BeforeValidator(_lower), Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    ]
    organizations: Annotated[tuple[OrganizationPath, ...], Field(min_length=1)] | Literal["*"]
    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = ("GET",)
    share: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)

    @field_validator("organizations", mode="before")
    @classmethod
    def _is_list_or_every(cls, value: object) -> object:
        if value != "*" and not isinstance(value, list | tuple):
            raise ValueError('must be a list like ["eu/10234695"], or "*" for all organizations')
        return value


class Settings(BaseModel):
    """All settings. Each field has the name of its environment variable in lowercase."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    slack_bot_token: BotToken
    slack_signing_secret: SigningSecret | None = None
    slack_app_token: AppToken | None = None
    slack_api_url: Address = "https://slack.com/api/"
    host: str = "0.0.0.0"  # noqa: S104 - HOST can restrict this
    port: Port = 3000
    metrics_token: SecretStr | None = None
    database_url: DatabaseUrl = SecretStr("sqlite:///gatehouse.db")
    database_pool: int = Field(default=10, ge=1, le=1000)
    roles: Annotated[dict[Role, tuple[SlackId, ...]], Json] = {}
    alerts_channel: ChannelId
    approvals_channel: ChannelId
    inventory_data_centers: Annotated[dict[DataCenter, DataCenterSettings], Json] = {}
    inventory_base_url: Address | None = None
    inventory_auth: Literal["query", "header"] = "query"
    inventory_auth_header: HeaderTemplate = "Bearer {token}"
    inventory_scope: str = Field(default="ServiceInventory.settings.READ", min_length=1)
    inventory_default_plan: Plan = "free"
    inventory_plans: Annotated[dict[str, Plan], Json] = {}
    inventory_reserve: Annotated[dict[ReservePath, ReserveSettings], Json] = {}
    inventory_cache_seconds: float = Field(default=300, ge=0, le=7 * 24 * 3600)
    inventory_watch: bool = True
    flow_base_url: FlowAddress | None = None
    flow_account_sid: str | None = None
    flow_auth_token: SecretStr | None = None
    flow_form_field: str = Field(default="testUsers", pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    flow_aliases: Annotated[dict[Alias, FlowSid], Json] = {}
    flow_approvers: Annotated[dict[str, tuple[NamedId, ...]], Json] = {}
    flow_policies: Annotated[dict[str, FlowPolicySettings], Json] = {}
    access_contact: NamedId | None = None
    approvals_needed: int = Field(default=1, ge=1, le=20)
    allow_self_approval: bool = False
    request_hours: Hours = 24
    remind_hours: Hours = 4
    email_base_url: EmailAddress | None = None
    email_api_key: SecretStr | None = None
    email_auth: EmailAuth = "bearer"
    commands_per_minute: int = Field(default=30, ge=0)
    gateway_port: Port | None = None
    gateway_host: str = "127.0.0.1"
    gateway_clients: Annotated[dict[ClientName, ClientSettings], Json] = {}
    audit_witness: bool = True
    retain_days: float = Field(default=400, gt=0, le=100 * 365)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"

    @field_validator("*", mode="before")
    @classmethod
    def _is_visible(cls, value: object, info: ValidationInfo) -> object:
        is_json = Json in cls.model_fields[info.field_name or ""].metadata
        if isinstance(value, str) and not value.isprintable() and not is_json:
            raise ValueError("contains a line break or another invisible character")
        return value

    @field_validator("flow_aliases")
    @classmethod
    def _are_clear(cls, aliases: dict[str, str]) -> dict[str, str]:
        by_name: dict[str, set[str]] = {}
        for alias, sid in aliases.items():
            by_name.setdefault(alias.casefold(), set()).add(sid.upper())
            if re.fullmatch(FLOW_SID, alias) and alias.upper() != sid.upper():
                raise ValueError(f"has the alias “{alias}”, which is another flow's SID")
        both = [f"“{alias}”" for alias in aliases if len(by_name[alias.casefold()]) > 1]
        if both:
            names = " and ".join(both)
            raise ValueError(f"uses {names} for different flows, but they differ only in case")
        return aliases

    @field_validator("gateway_clients")
    @classmethod
    def _have_own_tokens(cls, clients: dict[str, ClientSettings]) -> dict[str, ClientSettings]:
        hashes = Counter(client.token_sha256 for client in clients.values())
        same = [name for name, client in clients.items() if hashes[client.token_sha256] > 1]
        if same:
            raise ValueError(f"gives the same token to {' and '.join(same)}")
        return clients

    @property
    def named_organizations(self) -> dict[str, str]:
        """The configured `organization_id` of each data center that has one."""
        centers = self.inventory_data_centers.items()
        return {
            str(name): center.organization_id for name, center in centers if center.organization_id
        }

    @property
    def policy(self) -> Policy:
        """The configured permissions. Flows are identified by their uppercase SIDs."""
        return Policy(
            self.roles,
            {self.sid_of(name): ids for name, ids in self.flow_approvers.items()},
            self.allow_self_approval,
            self.access_contact,
            {self.sid_of(name): entry.policy for name, entry in self.flow_policies.items()},
            self.approvals_needed,
        )

    def sid_of(self, name: str) -> str:
        """Return the uppercase SID for a flow's alias or SID, or return `*` unchanged."""
        return name if name == EVERY_FLOW else self.flow_aliases.get(name, name).upper()

    def missing_for(self, service: Service) -> tuple[str, ...]:
        """Return the names of the settings that are missing for a service."""
        return tuple(name for name in SERVICES[service] if not getattr(self, name.lower()))

    def secrets(self) -> list[str]:
        """Return all configured secrets, which must be kept out of logs and messages."""
        url = self.database_url.get_secret_value()
        parameters = {} if url.startswith("sqlite:") else connection_parameters(url)
        found = (*_secrets_in(self), parameters.get("password"))
        return [secret for secret in found if secret and secret != url]


def _secrets_in(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel | Mapping):
        for part in dict(value).values():
            yield from _secrets_in(part)


# For settings that aren't listed here, the default is the example.
EXAMPLES: Mapping[str, str] = {
    **{name.upper(): str(field.default) for name, field in Settings.model_fields.items()},
    "SLACK_BOT_TOKEN": "xoxb-1234-abcd",
    "SLACK_SIGNING_SECRET": "8f742231b10e8888abcd99yyyzzz85a5",
    "SLACK_APP_TOKEN": "xapp-1-A012-3456-abcd",
    "METRICS_TOKEN": "a-long-random-word",
    "DATABASE_URL": "postgresql://gatehouse@db.example.com/gatehouse",
    "ROLES": '{"viewer": ["*"], "operator": ["S0TEAM"], "approver": ["U0ADA"]}',
    "ACCESS_CONTACT": "U0ADAM",
    "ALERTS_CHANNEL": "C0123ALERTS",
    "APPROVALS_CHANNEL": "C0123APPROVE",
    "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "…"}}',
    "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
    "INVENTORY_PLANS": '{"10234695": "premium"}',
    "INVENTORY_RESERVE": '{"eu/10234695": {"minute": 30, "day": 300}}',
    "INVENTORY_WATCH": "on",
    "FLOW_BASE_URL": "https://flows.example.com",
    "FLOW_ACCOUNT_SID": "AC0123456789abcdef0123456789abcdef",
    "FLOW_AUTH_TOKEN": "a1b2c3",
    "FLOW_ALIASES": '{"welcome": "FW0123456789abcdef0123456789abcdef"}',
    "FLOW_APPROVERS": '{"welcome": ["U0ADA", "S0TEAM"]}',
    "FLOW_POLICIES": '{"welcome": {"approvers": ["U0ADA"], "longest": "7d"}}',
    "ALLOW_SELF_APPROVAL": "false",
    "EMAIL_BASE_URL": "https://email.example.com",
    "EMAIL_API_KEY": "SG.abc",
    "GATEWAY_PORT": "3001",
    "GATEWAY_CLIENTS": (
        '{"nightly": {"token_sha256":'
        ' "e6267729024129bcb9f8ca4911ff7ff135181e5c637b4114650c5d8d54c148d6",'
        ' "organizations": ["eu/10234695"], "methods": ["GET"], "share": 0.5}}'
    ),
    "AUDIT_WITNESS": "on",
}
