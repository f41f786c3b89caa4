"""The settings, and the only code that reads them; `bot.settings.problems` has the errors."""

import json
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from yarl import URL

from bot.approvals.parse import parse_duration
from bot.approvals.rules import EVERY_FLOW, AutomaticRule, FlowPolicy
from bot.ops.secrets import is_loopback
from bot.permissions import EVERY_FULL_MEMBER, Policy, Role
from bot.settings.problems import (
    EXAMPLES,
    SettingsError,
    mistyped_problems,
    problem_of,
    problems_between,
)
from bot.store.postgres import connection_parameters

__all__ = ["DATA_CENTERS", "EXAMPLES", "Settings", "SettingsError", "read_settings", "revealed"]

LONGEST_CACHE_SECONDS = 7 * 24 * 3600
LONGEST_RETAIN_DAYS = 100 * 365
# The same length limit as for listed organizations.
LONGEST_ORGANIZATION_ID = 64
FLOW_SID = r"^FW[0-9a-fA-F]{32}$"
AUDIT_KEY_UNUSED = (
    "is no longer used: the audit log has no key, and the database is trusted. Remove the setting."
)
DataCenter = Literal["com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa"]
Service = Literal["inventory", "flow", "email"]
SERVICES: tuple[Service, ...] = get_args(Service)
DATA_CENTERS: tuple[str, ...] = get_args(DataCenter)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _from_json(value: object) -> object:
    """Parse JSON given as a string; errors include the position."""
    if not isinstance(value, str):
        return value

    def without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # Otherwise the last value of a repeated name would silently apply.
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"contains “{name}” twice")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=without_repetitions)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("is not JSON that can be read: it is nested too deeply") from None


def _safe_address(value: str) -> str:
    """Accept https for any host, http only for this machine, because credentials are sent there."""
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("is not an address") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("must be an address that starts with https://")
    if url.scheme == "http" and not is_loopback(url.host):
        raise ValueError("must be https:// (http:// is only allowed for localhost)")
    if url.user or url.password or url.query_string or url.fragment:
        raise ValueError("must have no user, password, query or fragment")
    return value


def _slack_ids(value: str) -> str:
    if value == EVERY_FULL_MEMBER or (value[:1] in {"U", "W", "S"} and value.isidentifier()):
        return value
    raise ValueError("is not a user id (U…, W…), a group id (S…) or *")


def _named_ids(value: str) -> str:
    if value == EVERY_FULL_MEMBER:
        raise ValueError("* is not allowed here: name people and groups")
    return _slack_ids(value)


def _hours(value: float) -> float:
    if not 0 < value < 24 * 366:
        raise ValueError("must be more than 0 hours and less than a year")
    return value


def _seconds(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError('must be a duration such as "2h" or "7d"')
    return seconds


def _organization_id(value: str) -> str:
    is_short = 0 < len(value) <= LONGEST_ORGANIZATION_ID
    if not is_short or not value.isprintable() or " " in value:
        raise ValueError('must be an organization id such as "10234695"')
    return value


def _organization_path(value: str) -> str:
    data_center, slash, organization_id = value.partition("/")
    if data_center not in DATA_CENTERS or not slash or not organization_id.strip():
        raise ValueError("is not <data center>/<organization id>, as in eu/10234695")
    return value


def _in_small_letters(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


# Plans as the specification spells them: "Free", "Standard".
Plan = Annotated[
    Literal["free", "standard", "professional", "premium", "enterprise"],
    BeforeValidator(_in_small_letters),
]
OrganizationId = Annotated[str, AfterValidator(_organization_id)]
OrganizationPath = Annotated[str, Field(max_length=80), AfterValidator(_organization_path)]
ReservePath = Literal["*"] | OrganizationPath
ClientName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
Method = Annotated[str, StringConstraints(to_upper=True)]
Address = Annotated[str, AfterValidator(_safe_address)]
Hours = Annotated[float, AfterValidator(_hours)]
ChannelId = Annotated[str, Field(pattern=r"^[CGD][A-Za-z0-9_]+$")]
SlackId = Annotated[str, AfterValidator(_slack_ids)]
NamedId = Annotated[str, AfterValidator(_named_ids)]
NamedIds = Annotated[tuple[NamedId, ...], Field(min_length=1)]
Duration = Annotated[int, BeforeValidator(_seconds)]
Json = BeforeValidator(_from_json)
Secret = Annotated[SecretStr, Field(min_length=1)]


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's value."""
    return None if secret is None else secret.get_secret_value()


class OAuthSettings(BaseModel):
    """A refresh-token grant (RFC 6749) for one data center."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client_id: str = Field(min_length=1)
    client_secret: Secret
    refresh_token: Secret
    token_url: Address


class DataCenterSettings(BaseModel):
    """The settings of a data center: one of two credentials, and optionally its own address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    authtoken: Secret | None = None
    oauth: OAuthSettings | None = None
    base_url: Address | None = None
    organization_id: OrganizationId | None = None

    @model_validator(mode="after")
    def _one_credential(self) -> "DataCenterSettings":
        if (self.authtoken is None) == (self.oauth is None):
            raise ValueError("needs exactly one of authtoken and oauth")
        return self

    def secrets(self) -> list[str]:
        """Return the credential's secret values."""
        found: list[str] = []
        _collect(self, found)
        return found


class AutomaticSettings(BaseModel):
    """The people whose requests a flow's policy approves automatically."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requesters: NamedIds = Field(alias="from")
    longest: Duration
    a_day: int = Field(ge=1, le=1000)

    @property
    def rule(self) -> AutomaticRule:
        """Return these settings as a rule."""
        return AutomaticRule(self.requesters, self.longest, self.a_day)


class FlowPolicySettings(BaseModel):
    """The policy for a flow's requests; each key is optional."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    approvers: NamedIds | None = None
    approvals_needed: int | None = Field(default=None, ge=1, le=20)
    notify: NamedIds | None = None
    longest: Duration | None = None
    escalate_after: Duration | None = None
    escalate_to: NamedIds | None = None
    auto: AutomaticSettings | None = None
    auto_remove: bool | None = None

    @property
    def policy(self) -> FlowPolicy:
        """Return these settings as a policy."""
        return FlowPolicy(
            self.approvers,
            self.approvals_needed or 0,
            self.notify,
            self.longest,
            self.escalate_after,
            self.escalate_to,
            self.auto.rule if self.auto else None,
            self.auto_remove,
        )


class ReserveSettings(BaseModel):
    """Calls per minute and day that are left to programs that don't use Gatehouse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minute: int = Field(default=0, ge=0, lt=100)
    day: int = Field(default=0, ge=0)


class ClientSettings(BaseModel):
    """A gateway client. Its token is stored only as a hash: see `gateway-token`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_sha256: Annotated[
        str, BeforeValidator(_in_small_letters), Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    ]
    organizations: Annotated[tuple[OrganizationPath, ...], Field(min_length=1)] | Literal["*"]
    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = ("GET",)
    share: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)

    @field_validator("organizations", mode="before")
    @classmethod
    def _is_list_or_every(cls, value: object) -> object:
        if value != "*" and not isinstance(value, list | tuple):
            raise ValueError('must be a list like ["eu/10234695"], or "*" for all of them')
        return value

    @field_validator("methods")
    @classmethod
    def _are_methods(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [method for method in value if method not in METHODS]
        if unknown:
            raise ValueError(f"must be a list of {', '.join(METHODS)}")
        return value


class Settings(BaseModel):
    """All settings, named as in the environment but in lowercase."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    slack_bot_token: SecretStr
    slack_signing_secret: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_api_url: Address = "https://slack.com/api/"
    host: str = "0.0.0.0"  # noqa: S104 - a server; HOST narrows it
    port: int = Field(default=3000, ge=0, le=65535)
    metrics_token: SecretStr | None = None
    database_url: SecretStr = SecretStr("sqlite:///gatehouse.db")
    database_pool: int = Field(default=10, ge=1, le=1000)
    roles: Annotated[dict[Role, tuple[SlackId, ...]], Json] = Field(default_factory=dict)
    alerts_channel: ChannelId
    approvals_channel: ChannelId
    inventory_data_centers: Annotated[dict[DataCenter, DataCenterSettings], Json] = Field(
        default_factory=dict
    )
    inventory_base_url: Address | None = None
    inventory_auth: Literal["query", "header"] = "query"
    inventory_auth_header: str = "Bearer {token}"
    inventory_scope: str = Field(default="ServiceInventory.settings.READ", min_length=1)
    inventory_default_plan: Plan = "free"
    inventory_plans: Annotated[dict[str, Plan], Json] = Field(default_factory=dict)
    inventory_reserve: Annotated[dict[ReservePath, ReserveSettings], Json] = Field(
        default_factory=dict
    )
    inventory_cache_seconds: float = Field(default=300, ge=0, le=LONGEST_CACHE_SECONDS)
    inventory_watch: bool = True
    flow_base_url: Address | None = None
    flow_account_sid: str | None = None
    flow_auth_token: SecretStr | None = None
    flow_form_field: str = Field(default="testUsers", pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    flow_aliases: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[^\s\"',]{1,50}$")],
            Annotated[str, Field(pattern=FLOW_SID)],
        ],
        Json,
    ] = Field(default_factory=dict)
    flow_approvers: Annotated[dict[str, tuple[NamedId, ...]], Json] = Field(default_factory=dict)
    flow_policies: Annotated[dict[str, FlowPolicySettings], Json] = Field(default_factory=dict)
    access_contact: NamedId | None = None
    approvals_needed: int = Field(default=1, ge=1, le=20)
    allow_self_approval: bool = False
    request_hours: Hours = 24
    remind_hours: Hours = 4
    email_base_url: Address | None = None
    email_api_key: SecretStr | None = None
    email_auth: Literal["bearer", "basic"] = "bearer"
    commands_per_minute: int = Field(default=30, ge=0)
    gateway_port: int | None = Field(default=None, ge=0, le=65535)
    gateway_host: str = "127.0.0.1"
    gateway_clients: Annotated[dict[ClientName, ClientSettings], Json] = Field(default_factory=dict)
    # No longer used; setting it logs a warning.
    audit_key: str | None = Field(default=None, repr=False)
    audit_witness: bool = True
    retain_days: float = Field(default=400, gt=0, le=LONGEST_RETAIN_DAYS)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"

    @property
    def named_organizations(self) -> dict[str, str]:
        """The `organization_id` of each data center that has one configured."""
        centers = self.inventory_data_centers.items()
        return {
            str(name): center.organization_id for name, center in centers if center.organization_id
        }

    @property
    def policy(self) -> Policy:
        """The permissions in the settings, with flows by uppercase SID."""
        aliases, approvers = self.flow_aliases, self.flow_approvers
        by_sid = {aliases.get(name, name).upper(): ids for name, ids in approvers.items()}
        policies = {
            (name if name == EVERY_FLOW else aliases.get(name, name)).upper(): flow_policy.policy
            for name, flow_policy in self.flow_policies.items()
        }
        return Policy(
            self.roles,
            by_sid,
            self.allow_self_approval,
            self.access_contact,
            policies,
            self.approvals_needed,
        )

    def missing_for(self, service: Service) -> tuple[str, ...]:
        """Return the missing settings for a service; empty if the service can be used."""
        needed: dict[str, dict[str, object]] = {
            "inventory": {"INVENTORY_DATA_CENTERS": self.inventory_data_centers},
            "flow": {
                "FLOW_BASE_URL": self.flow_base_url,
                "FLOW_ACCOUNT_SID": self.flow_account_sid,
                "FLOW_AUTH_TOKEN": self.flow_auth_token,
            },
            "email": {"EMAIL_BASE_URL": self.email_base_url, "EMAIL_API_KEY": self.email_api_key},
        }
        return tuple(name for name, value in needed[service].items() if not value)

    def secrets(self) -> list[str]:
        """Return all configured secrets, which must be kept out of logs and messages."""
        found: list[str] = []
        _collect(self, found)
        url = self.database_url.get_secret_value()
        parameters = {} if url.startswith("sqlite:") else connection_parameters(url)
        return [secret for secret in (*found, parameters.get("password")) if secret]


def _collect(value: object, found: list[str]) -> None:
    if isinstance(value, SecretStr):
        found.append(value.get_secret_value())
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name != "database_url":
                _collect(getattr(value, name), found)
    elif isinstance(value, Mapping):
        for entry in value.values():
            _collect(entry, found)


# Replaces missing or invalid required settings while other settings are checked.
PLACEHOLDERS = {"slack_bot_token": "xoxb-", "alerts_channel": "C0", "approvals_channel": "C0"}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings from the environment; an empty value counts as not set.

    Raises:
        SettingsError: Some settings are invalid or missing; the error names all of them.
    """
    given = {
        name: environment[name.upper()].strip()
        for name in Settings.model_fields
        if environment.get(name.upper(), "").strip()
    }
    try:
        settings, wrong, problems = Settings.model_validate(given), set[str](), list[str]()
    except ValidationError as error:
        wrong = {str(detail["loc"][0]) for detail in error.errors()}
        problems = [problem_of(detail) for detail in error.errors(include_input=False)]
        right = {name: value for name, value in given.items() if name not in wrong}
        settings = Settings.model_validate({**PLACEHOLDERS, **right})
    problems += problems_between(given, settings, wrong) + mistyped_problems(environment)
    if problems:
        raise SettingsError(list(dict.fromkeys(problems)))
    return settings
