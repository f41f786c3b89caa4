"""Defines the type, default value and example of each setting."""

import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    DirectoryPath,
    Field,
    FilePath,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import from_json
from yarl import URL

from bot.approvals.rules import EVERY_FLOW, FlowPolicy, Number
from bot.ids import ChannelId, FlowSid, NamedId, NotEmpty, SlackId, like
from bot.ops.secrets import is_loopback
from bot.permissions import Policy, Role
from bot.store.postgres import SCHEMES, connection_parameters

DataCenter = Literal["com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa"]
ServiceName = Literal["inventory", "flow", "email"]
DATA_CENTERS: tuple[str, ...] = get_args(DataCenter)
# INVENTORY_BASE_URL is the address of this data center.
HOME = "com"
# The settings that each service needs.
SERVICES: dict[ServiceName, tuple[str, ...]] = {
    "inventory": ("INVENTORY_DATA_CENTERS",),
    "flow": ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN"),
    "email": ("EMAIL_BASE_URL", "EMAIL_API_KEY"),
}

# Settings that other libraries read from the environment.
PROXIES = ("https_proxy", "http_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")
# Quotes that people copy or type around a value.
QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”"}


def as_json(value: object) -> object:
    """Parse a string as JSON, or return any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        # Bytes of the environment that aren't UTF-8 are kept as surrogates.
        table: object = from_json(value.encode(errors="surrogateescape"))
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    # Of two equal keys, the first would be ignored.
    json.loads(value, object_pairs_hook=_require_each_once)
    return table


def _require_each_once(pairs: Sequence[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("has a table in which a key occurs twice")


def _url(value: str) -> URL:
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("is not a valid address") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("must be an address that starts with https:// or http://")
    return url


def safe_address(value: str) -> str:
    """Return the URL if it uses HTTPS, or HTTP on this machine. Raise ValueError for other URLs."""
    url = _url(value)
    if url.scheme == "http" and not is_loopback(url.host):
        raise ValueError("must start with https:// (http:// is allowed only for localhost)")
    if url.user or url.password or url.query_string or url.fragment:
        raise ValueError("must not contain a username, password, query or fragment")
    return value


def _proxy_address(value: SecretStr) -> SecretStr:
    _url(value.get_secret_value())
    return value


def _certificates(file: Path) -> Path:
    try:
        ssl.create_default_context(cafile=file)
    except OSError:
        raise ValueError("can't be read, or has no certificates in the PEM format") from None
    return file


def _unquoted(value: object) -> object:
    """Refuse text in quotes. In many places, quotes become part of the value."""
    if isinstance(value, str) and len(value) > 1 and QUOTES.get(value[0]) == value[-1]:
        raise ValueError("has quotation marks around its value. Remove these inner quotation marks")
    return value


def _plain(value: object) -> object:
    """Refuse text in quotes, and text with invisible characters."""
    if isinstance(value, str) and not value.isprintable():
        raise ValueError("contains a line break or another invisible character")
    return _unquoted(value)


def _database_address(value: SecretStr) -> SecretStr:
    url = value.get_secret_value()
    if url.partition("://")[0].lower() in SCHEMES:
        connection_parameters(url)
    elif not re.fullmatch("sqlite:///[^?]+", url) or ":memory:" in url:
        raise ValueError("must start with postgresql:// or be sqlite:///<file>")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


# The specification capitalizes plan names ("Free"), so ignore case.
PlanName = Annotated[
    Literal["free", "standard", "professional", "premium", "enterprise"], BeforeValidator(_lower)
]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# The same length limit applies to organizations that the service lists.
OrganizationId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]{1,64}$")]
ORGANIZATION_PATH = rf"({'|'.join(map(re.escape, DATA_CENTERS))})/[0-9]{{1,64}}"
# `<data center>/<ID>`, or `*` for all organizations. `settings_from` checks it, because the problem
# with an ID alone depends on the other settings. Other words are no paths at all.
OrganizationPath = Annotated[str, like(r".*/.*|\d+|\*", "must be <data center>/<organization ID>")]
Address = Annotated[str, AfterValidator(safe_address)]
ServiceAddress = Annotated[Address, like(r"(?!.*/v[23]/*$).*", "must not end with /v2 or /v3")]
Calls = Annotated[Number, Field(ge=0)]
Limit = Annotated[Number, Field(ge=1)]
Hours = Annotated[float, Field(gt=0, lt=24 * 366)]
Port = Annotated[int, Field(ge=0, le=65535)]
Alias = Annotated[
    str,
    like(
        r"(?!\*$)[^\s\"',]{1,50}",
        "must be a name of up to 50 characters without spaces, quotes and commas",
    ),
]
# The first part of a path at the gateway.
OTHER_PATHS = ("testusers", "healthz")
SHORT_NAME = like(
    "[a-z0-9-]{1,40}", "must be a name of up to 40 lowercase letters, digits and hyphens"
)
ClientName = Annotated[str, SHORT_NAME]
ApiName = Annotated[
    str,
    like("[a-z].*", "must begin with a lowercase letter"),
    SHORT_NAME,
    like(
        f"(?!({'|'.join(map(re.escape, (*DATA_CENTERS, *OTHER_PATHS)))})$).*",
        "can't be the name of a data center, testusers or healthz",
    ),
]
ProxyAddress = Annotated[SecretStr, AfterValidator(_proxy_address)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_address)]
HeaderTemplate = Annotated[str, like(r".*\{token\}.*", "must contain {token}")]
BotToken = Annotated[SecretStr, like("xoxb-.*", "must start with xoxb-")]
AppToken = Annotated[SecretStr, like("xapp-.*", "must start with xapp-")]
SigningSecret = Annotated[
    SecretStr,
    like(
        "(?!xox|xapp-).*",
        "is a token, not the Signing Secret. Copy the secret from the app's Basic Information page",
    ),
]
EmailAuth = Annotated[
    Literal["bearer", "basic"],
    like(
        "bearer|basic",
        "must be bearer or basic, because support for account passwords ended in Q4 2020",
    ),
]
Secret = Annotated[SecretStr, Field(min_length=1)]


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's value, or None if it isn't set."""
    return None if secret is None else secret.get_secret_value()


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    _plain = field_validator("*", mode="before")(_plain)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problem := self.problem():
            raise ValueError(problem)
        return self

    def problem(self) -> str | None:
        """Return what is wrong with the keys together, if anything."""
        return None


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

    def problem(self) -> str | None:
        """Return what is wrong with the keys together, if anything."""
        if (self.authtoken is None) == (self.oauth is None):
            return "needs either authtoken or oauth, but not both"
        return None


class ApiReserve(_Part):
    """Calls per minute and per day that are reserved for programs that don't use Gatehouse."""

    minute: Calls = 0
    day: Calls = 0


class ReserveSettings(ApiReserve):
    """A reserve in an organization, whose limit is 100 calls per minute."""

    minute: Annotated[Calls, Field(lt=100)] = 0


class ApiLimits(_Part):
    """The limits of another API. What is absent isn't limited."""

    minute: Limit | None = None
    day: Limit | None = None
    concurrent: Limit | None = None

    def problem(self) -> str | None:
        """Return what is wrong with the keys together, if anything."""
        if self.minute is self.day is self.concurrent is None:
            return "needs at least one of minute, day and concurrent"
        return None


class ApiSettings(_Part):
    """Another API: its address, credential and limits."""

    base_url: Address
    token: Secret | None = None
    oauth: OAuthSettings | None = None
    header: Annotated[
        str, like(r"[A-Za-z0-9-]+: .*\{token\}.*", "must be a header with {token} in its value")
    ] = "Authorization: Bearer {token}"
    query: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")] | None = None
    limits: ApiLimits
    reserve: ApiReserve = ApiReserve()

    def problem(self) -> str | None:
        """Return what is wrong with the keys together, if anything."""
        if (self.token is None) == (self.oauth is None):
            return "needs either token or oauth, but not both"
        if self.query and "header" in self.model_fields_set:
            return "needs either header or query, but not both"
        if self.query and self.oauth:
            return "can't send an OAuth token in the query"
        for kind, reserved in self.reserve:
            if reserved and reserved >= (getattr(self.limits, kind) or 0):
                return f"reserve: {kind} must be below the limit per {kind}"
        return None


class ClientSettings(_Part):
    """A gateway client. The settings contain the SHA-256 hash of the client's token.

    If it has an `owner`, it can ask for changes to these `flows` in the owner's name.
    """

    token_sha256: Annotated[
        str, BeforeValidator(_lower), Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    ]
    organizations: Annotated[
        tuple[str, ...],
        NotEmpty,
        BeforeValidator(lambda value: ["*"] if value == "*" else value),
    ] = ()
    methods: Annotated[tuple[Method, ...], NotEmpty] = ("GET",)
    share: float = Field(default=1.0, gt=0, le=1, strict=True)
    owner: Annotated[str, like(r"[UW]\w*", "is not a user ID (U…, W…)")] | None = None
    flows: Annotated[tuple[str, ...], NotEmpty] = ()
    auto: Annotated[bool, Field(strict=True)] = False

    def problem(self) -> str | None:
        """Return what is wrong with the keys together, if anything."""
        if (self.owner is None) == bool(self.flows):
            return "needs both owner and flows, or neither"
        if self.auto and self.owner is None:
            return "auto needs owner and flows"
        if not self.organizations and self.owner is None:
            return "needs organizations, or owner and flows"
        return None


def optional(example: object) -> Any:  # noqa: ANN401 - a field
    """Return a setting that isn't set by default."""
    return Field(None, examples=[example])


def table(example: object) -> Any:  # noqa: ANN401 - a field
    """Return a setting that is an empty table by default."""
    return Field({}, examples=[example])


class Settings(BaseModel):
    """All settings. Each field has the name of its environment variable in lowercase."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    slack_bot_token: BotToken = Field(examples=["xoxb-1234-abcd"])
    """The Bot User OAuth Token."""
    slack_signing_secret: SigningSecret | None = optional("8f742231b10e8888abcd99yyyzzz85a5")
    """Proves that requests come from Slack."""
    slack_app_token: AppToken | None = optional("xapp-1-A012-3456-abcd")
    """Turns on Socket Mode, which needs no public address."""
    slack_api_url: Address = "https://slack.com/api/"
    """The base URL of Slack's Web API."""
    alerts_channel: ChannelId = Field(examples=["C0123ALERTS"])
    """The ID of the channel for alerts."""
    approvals_channel: ChannelId = Field(examples=["C0123APPROVE"])
    """The ID of the private channel for approval cards."""
    host: str = "0.0.0.0"  # noqa: S104 - HOST can restrict this
    """The address to listen on."""
    port: Port = 3000
    """The port to listen on."""
    metrics_token: SecretStr | None = optional("a-long-random-word")
    """The token for reading /metrics."""
    database_url: DatabaseUrl = Field(
        SecretStr("sqlite:///gatehouse.db"),
        examples=["postgresql://gatehouse@db.example.com/gatehouse"],
    )
    """The database: PostgreSQL, or SQLite for a single process."""
    database_pool: int = Field(10, ge=1, le=1000)
    """The most PostgreSQL connections of each process."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The lowest level to log."""
    log_format: Literal["json", "console"] = "json"
    """The log format: json, or console, which is easier to read."""
    retain_days: float = Field(400, gt=0, le=100 * 365)
    """The days to keep completed requests and sent messages."""
    https_proxy: ProxyAddress | None = optional("http://proxy.example.com:3128")
    """The proxy for connections to https:// addresses."""
    http_proxy: ProxyAddress | None = optional("http://proxy.example.com:3128")
    """The proxy for connections to http:// addresses."""
    no_proxy: str | None = optional("localhost,.example.com")
    """The hosts to connect to without a proxy."""
    ssl_cert_file: Annotated[FilePath, AfterValidator(_certificates)] | None = optional(
        "/etc/ssl/certs/ca-certificates.crt"
    )
    """A file of trusted certificate authorities."""
    ssl_cert_dir: DirectoryPath | None = optional("/etc/ssl/certs")
    """A folder of trusted certificate authorities."""
    access_contact: NamedId | None = optional("U0ADAM")
    """The user or group that people without a role should contact."""
    approvals_needed: int = Field(1, ge=1, le=20)
    """The number of people who must approve a change."""
    allow_self_approval: bool = False
    """Lets approvers approve their own requests."""
    request_hours: Hours = 24
    """The hours after which an unapproved request expires."""
    remind_hours: Hours = 4
    """The hours after which people are reminded."""
    commands_per_minute: int = Field(30, ge=0)
    """The most commands per person, minute and process."""
    audit_witness: bool = True
    """Posts the audit log's last hash in Slack every day."""
    roles: dict[Role, tuple[SlackId, ...]] = table(
        {"viewer": ["*"], "operator": ["S0TEAM"], "approver": ["U0ADA"]}
    )
    """The members of each role: users, groups, or * for all full members."""
    inventory_base_url: Address | None = optional("https://inventory.example.com/inventory/v1")
    """The inventory API in the data center com."""
    inventory_auth: Literal["query", "header"] = "query"
    """The place of an authtoken in requests."""
    inventory_auth_header: HeaderTemplate = "Bearer {token}"
    """The Authorization header of the inventory API."""
    inventory_scope: str = Field("ServiceInventory.settings.READ", min_length=1)
    """The OAuth scope that messages mention."""
    inventory_default_plan: PlanName = "free"
    """The plan of organizations without a known plan."""
    inventory_cache_seconds: float = Field(300, ge=0, le=7 * 24 * 3600)
    """The seconds to keep a list of organizations."""
    inventory_watch: bool = True
    """Looks for blocks that other programs cause."""
    inventory_data_centers: dict[DataCenter, DataCenterSettings] = table({"eu": {"authtoken": "…"}})
    """The credential of each data center."""
    inventory_plans: dict[OrganizationPath, PlanName] = table({"eu/10234695": "premium"})
    """The plans of organizations."""
    inventory_reserve: dict[OrganizationPath, ReserveSettings] = table(
        {"eu/10234695": {"minute": 30, "day": 300}}
    )
    """Calls that are reserved for programs that don't use Gatehouse."""
    flow_base_url: ServiceAddress | None = optional("https://flows.example.com")
    """The address of the flow service, without /v2."""
    flow_account_sid: str | None = optional("AC0123456789abcdef0123456789abcdef")
    """The account ID of the flow service."""
    flow_auth_token: SecretStr | None = optional("a1b2c3")
    """The token of the flow service."""
    flow_form_field: str = Field("testUsers", pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    """The form field of updates. Some services expect TestUsers."""
    flow_aliases: dict[Alias, FlowSid] = table({"welcome": "FW0123456789abcdef0123456789abcdef"})
    """Short names of flows."""
    flow_policies: dict[str, FlowPolicy] = table(
        {"welcome": {"approvers": ["U0ADA"], "longest": "7d"}}
    )
    """The policies of flows (docs/policies.md)."""
    email_base_url: ServiceAddress | None = optional("https://email.example.com")
    """The address of the email service, without /v3."""
    email_api_key: SecretStr | None = optional("SG.abc")
    """The API key of the email service."""
    email_auth: EmailAuth = "bearer"
    """The form in which the API key is sent."""
    gateway_port: Port | None = optional(3001)
    """The gateway's port. Without it, the gateway is off."""
    gateway_host: str = "127.0.0.1"
    """The address that the gateway listens on."""
    gateway_clients: dict[ClientName, ClientSettings] = table(
        {
            "nightly": {
                "token_sha256": (
                    "e6267729024129bcb9f8ca4911ff7ff135181e5c637b4114650c5d8d54c148d6"
                ),
                "organizations": ["eu/10234695"],
                "methods": ["GET"],
                "share": 0.5,
            }
        }
    )
    """The gateway's clients. `gatehouse gateway-token` creates a token."""

    apis: dict[ApiName, ApiSettings] = table(
        {"xero": {"base_url": "https://api.xero.com", "token": "…", "limits": {"minute": 60}}}
    )
    """Other APIs that gateway clients can call within their limits (docs/gateway.md)."""

    @property
    def proxies(self) -> dict[str, str]:
        """The environment variables for proxies and certificates, which other libraries read."""
        values = ((name.upper(), getattr(self, name)) for name in PROXIES)
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            for name, value in values
            if value is not None
        }

    @field_validator("*", mode="before")
    @classmethod
    def _is_plain(cls, value: object, info: ValidationInfo) -> object:
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation is not bool:
            raise ValueError("must not be true or false")
        if get_origin(field.annotation) is not dict:
            return _plain(value)
        # In the environment, a table is JSON, which may have several lines.
        return as_json(_unquoted(value))

    @property
    def policy(self) -> Policy:
        """The configured permissions. Flows are identified by their uppercase SIDs."""
        return Policy(
            self.roles,
            self.allow_self_approval,
            self.access_contact,
            {self.sid_of(name): policy for name, policy in self.flow_policies.items()},
            self.approvals_needed,
        )

    def root_of(self, data_center: DataCenter) -> URL:
        """Return the address of a data center's API.

        Without an address of its own, it's `INVENTORY_BASE_URL` with another suffix of the host.
        """
        own = self.inventory_data_centers[data_center].base_url
        url = URL(own or self.inventory_base_url or "")
        if own or data_center == HOME:
            return url
        return url.with_host(f"{(url.host or '').removesuffix(HOME)}{data_center}")

    def sid_of(self, name: str) -> str:
        """Return the uppercase SID for a flow's alias or SID, or return `*` unchanged."""
        return name if name == EVERY_FLOW else self.flow_aliases.get(name, name).upper()

    def may_ask(self, client: str, owner: str, flow_sid: str) -> bool:
        """Return True if a gateway client can ask for changes to the flow in the owner's name."""
        settings = self.gateway_clients.get(client)
        if settings is None or settings.owner != owner:
            return False
        return flow_sid.upper() in map(self.sid_of, settings.flows)

    def missing_for(self, service: ServiceName) -> tuple[str, ...]:
        """Return the names of the settings that are missing for a service."""
        return tuple(name for name in SERVICES[service] if not getattr(self, name.lower()))

    def secrets(self) -> list[str]:
        """Return all configured secrets, which must be kept out of logs and messages."""
        url = self.database_url.get_secret_value()
        parameters = {} if url.startswith("sqlite:") else connection_parameters(url)
        proxies = (revealed(self.https_proxy), revealed(self.http_proxy))
        passwords = (URL(proxy or "").password for proxy in proxies)
        secrets = (*secrets_in(self), parameters.get("password"), *passwords)
        return [secret for secret in secrets if secret and secret != url]


def secrets_in(value: object) -> Iterator[str]:
    """Yield the secrets in a part of the settings."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel | Mapping):
        for part in dict(value).values():
            yield from secrets_in(part)


SCHEMA = Settings.model_json_schema()


def is_secret(name: str) -> bool:
    """Return True if the setting contains a secret."""
    field = Settings.model_fields[name]
    return "SecretStr" in str(field.annotation) or name in {"inventory_data_centers", "apis"}


def keys_in(*place: str) -> list[str]:
    """Return the known keys of a table in the settings, such as `keys_in("roles")`."""
    table = SCHEMA
    for part in place:
        inner = table.get("properties", {}).get(part) or table.get("additionalProperties") or {}
        # The names in some tables have a pattern.
        inner = next(iter(table.get("patternProperties", {}).values()), inner)
        # An optional table is `anyOf` the table and null.
        inner = next(iter(inner.get("anyOf", ())), inner)
        table = SCHEMA["$defs"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
    return list(table.get("properties", ()))
