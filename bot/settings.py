"""The settings: the only reader of the environment, and what is said when it is wrong."""

import ipaddress
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from yarl import URL

from bot.permissions import EVERY_FULL_MEMBER, Policy, Role

DATA_CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")
FLOW_SID = r"^FW[0-9a-fA-F]{32}$"
Plan = Literal["free", "standard", "professional", "premium", "enterprise"]
DataCenter = Literal["com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa"]


class SettingsError(Exception):
    """Some settings are wrong; `problems` has one line each, with the name and an example."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def _from_json(value: object) -> object:
    """Read JSON where the environment has a text; an error says where."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _safe_address(value: str) -> str:
    """Take https anywhere, http only on this machine: a credential travels in the address."""
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("is not an address") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("is not an address that starts with https://")
    if url.scheme == "http" and not _is_loopback(url.host):
        raise ValueError("must be https:// (http:// is taken for this machine only)")
    if url.user or url.password or url.query_string or url.fragment:
        raise ValueError("must have no user, password, query or fragment")
    return value


def _slack_ids(value: str) -> str:
    if value == EVERY_FULL_MEMBER or (value[:1] in {"U", "W", "S"} and value.isidentifier()):
        return value
    raise ValueError(f"“{value}” is not a user id (U…, W…), a group id (S…) or *")


def _named_ids(value: str) -> str:
    if value == EVERY_FULL_MEMBER:
        raise ValueError("* is not taken here: name people and groups")
    return _slack_ids(value)


def _hours(value: float) -> float:
    if not 0 < value < 24 * 366:
        raise ValueError("must be more than 0 hours and less than a year")
    return value


Address = Annotated[str, AfterValidator(_safe_address)]
Hours = Annotated[float, AfterValidator(_hours)]
ChannelId = Annotated[str, Field(pattern=r"^[CGD][A-Za-z0-9_]+$")]
SlackId = Annotated[str, AfterValidator(_slack_ids)]
NamedId = Annotated[str, AfterValidator(_named_ids)]
Json = BeforeValidator(_from_json)


def revealed(secret: SecretStr | None) -> str | None:
    """Return the value of a secret, for the one place that needs it."""
    return None if secret is None else secret.get_secret_value()


class OAuthSettings(BaseModel):
    """A refresh-token grant (RFC 6749) for one data center."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    refresh_token: SecretStr
    token_url: Address


class DataCenterSettings(BaseModel):
    """How one data center is reached: one of the two credentials, and its own address if any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    authtoken: SecretStr | None = None
    oauth: OAuthSettings | None = None
    base_url: Address | None = None
    organization_id: str | None = None

    @model_validator(mode="after")
    def _one_credential(self) -> "DataCenterSettings":
        if (self.authtoken is None) == (self.oauth is None):
            raise ValueError("needs exactly one of authtoken and oauth")
        return self


class Settings(BaseModel):
    """Every setting, by its name in the environment (in lower case here)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    slack_bot_token: SecretStr
    slack_signing_secret: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_api_url: Address = "https://slack.com/api/"
    host: str = "0.0.0.0"  # noqa: S104 - a server; HOST narrows it
    port: int = Field(default=3000, ge=0, le=65535)
    metrics_token: SecretStr | None = None
    database_url: SecretStr = SecretStr("sqlite:///gatehouse.db")
    roles: Annotated[dict[Role, tuple[SlackId, ...]], Json] = Field(default_factory=dict)
    alerts_channel: ChannelId
    approvals_channel: ChannelId
    inventory_data_centers: Annotated[dict[DataCenter, DataCenterSettings], Json] = Field(
        default_factory=dict
    )
    inventory_base_url: Address | None = None
    inventory_auth: Literal["query", "header"] = "query"
    inventory_auth_header: str = "Bearer {token}"
    inventory_default_plan: Plan = "free"
    inventory_plans: Annotated[dict[str, Plan], Json] = Field(default_factory=dict)
    inventory_cache_seconds: float = Field(default=300, ge=0)
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
    approvals_needed: int = Field(default=1, ge=1, le=20)
    allow_self_approval: bool = False
    request_hours: Hours = 24
    remind_hours: Hours = 4
    email_base_url: Address | None = None
    email_api_key: SecretStr | None = None
    email_auth: Literal["bearer", "basic"] = "bearer"
    commands_per_minute: int = Field(default=30, ge=0)
    audit_key: SecretStr | None = None
    retain_days: float = Field(default=400, gt=0)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"

    @property
    def audit_key_bytes(self) -> bytes | None:
        """The key of the audit chain."""
        key = revealed(self.audit_key)
        return None if key is None else key.encode()

    @property
    def policy(self) -> Policy:
        """What the settings say about permissions; flows by SID in capitals, as case is nothing."""
        aliases, approvers = self.flow_aliases, self.flow_approvers
        by_sid = {aliases.get(name, name).upper(): ids for name, ids in approvers.items()}
        return Policy(self.roles, by_sid, self.allow_self_approval)

    def missing_for(self, service: Literal["inventory", "flow", "email"]) -> tuple[str, ...]:
        """Return the names of the settings that a service still needs; none when it can be used."""
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
        """Return every configured secret value, for whoever must keep it out of sight."""
        found: list[str] = []
        _collect(self, found)
        url_password = URL(self.database_url.get_secret_value()).password
        return [one for one in (*found, url_password) if one]


def _collect(value: object, found: list[str]) -> None:
    if isinstance(value, SecretStr):
        found.append(value.get_secret_value())
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name != "database_url":
                _collect(getattr(value, name), found)
    elif isinstance(value, Mapping):
        for one in value.values():
            _collect(one, found)


EXAMPLES: Mapping[str, str] = {
    "SLACK_BOT_TOKEN": "xoxb-1234-abcd",
    "SLACK_SIGNING_SECRET": "8f742231b10e8888abcd99yyyzzz85a5",
    "SLACK_APP_TOKEN": "xapp-1-A012-3456-abcd",
    "SLACK_API_URL": "https://slack.com/api/",
    "HOST": "0.0.0.0",  # noqa: S104 - an example
    "PORT": "3000",
    "METRICS_TOKEN": "a-long-random-word",
    "DATABASE_URL": "postgresql://gatehouse@db.example.com/gatehouse",
    "ROLES": '{"viewer": ["*"], "operator": ["S0TEAM"], "approver": ["U0ADA"]}',
    "ALERTS_CHANNEL": "C0123ALERTS",
    "APPROVALS_CHANNEL": "C0123APPROVE",
    "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "…"}}',
    "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
    "INVENTORY_AUTH": "query",
    "INVENTORY_AUTH_HEADER": "Bearer {token}",
    "INVENTORY_DEFAULT_PLAN": "free",
    "INVENTORY_PLANS": '{"10234695": "premium"}',
    "INVENTORY_CACHE_SECONDS": "300",
    "INVENTORY_WATCH": "on",
    "FLOW_BASE_URL": "https://flows.example.com",
    "FLOW_ACCOUNT_SID": "AC0123456789abcdef0123456789abcdef",
    "FLOW_AUTH_TOKEN": "a1b2c3",
    "FLOW_FORM_FIELD": "testUsers",
    "FLOW_ALIASES": '{"welcome": "FW0123456789abcdef0123456789abcdef"}',
    "FLOW_APPROVERS": '{"welcome": ["U0ADA", "S0TEAM"]}',
    "APPROVALS_NEEDED": "1",
    "ALLOW_SELF_APPROVAL": "false",
    "REQUEST_HOURS": "24",
    "REMIND_HOURS": "4",
    "EMAIL_BASE_URL": "https://email.example.com",
    "EMAIL_API_KEY": "SG.abc",
    "EMAIL_AUTH": "bearer",
    "COMMANDS_PER_MINUTE": "30",
    "AUDIT_KEY": "32 random bytes in hex",
    "RETAIN_DAYS": "400",
    "LOG_LEVEL": "INFO",
    "LOG_FORMAT": "json",
}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings of the environment; an empty value is as none.

    Raises:
        SettingsError: Some are wrong or missing; all of them are named at once.
    """
    given = {
        name: environment[name.upper()].strip()
        for name in Settings.model_fields
        if environment.get(name.upper(), "").strip()
    }
    problems, settings = _validate(given)
    problems += _problems_between(given, settings)
    if problems or settings is None:
        raise SettingsError(problems)
    return settings


def _validate(given: Mapping[str, str]) -> tuple[list[str], Settings | None]:
    try:
        return [], Settings.model_validate(given)
    except ValidationError as error:
        return list(dict.fromkeys(_problem(one) for one in error.errors())), None


def _problem(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    """Say what is wrong without the value, which may be a secret."""
    name = str(error["loc"][0]).upper()
    where = "".join(f" → {part}" for part in error["loc"][1:] if part != "[key]")
    what = _WORDS.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    if name == "EMAIL_AUTH":
        what = "must be bearer or basic with an API key: account passwords ended in Q4 2020"
    return problem_line(name, f"{where[1:]}{': ' if where else ''}{_uncapitalised(what)}")


_WORDS = {"missing": "is required", "bool_parsing": "must be on or off"}


def problem_line(name: str, what: str) -> str:
    """Return one line about one setting: its name, what is wrong, an example."""
    return f"{name} {what} (example: {name}={EXAMPLES[name]})"


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _problems_between(given: Mapping[str, str], settings: Settings | None) -> list[str]:
    """Return what no single setting can see."""
    problems = list(_slack_problems(given)) + list(_database_problems(given))
    if settings is None:
        return problems
    return problems + _inventory_problems(settings) + _approver_problems(settings)


def _slack_problems(given: Mapping[str, str]) -> list[str]:
    problems = []
    if not given.get("slack_signing_secret") and not given.get("slack_app_token"):
        problems.append(
            problem_line("SLACK_SIGNING_SECRET", "is required unless SLACK_APP_TOKEN is set")
        )
    for name, prefix in (("slack_bot_token", "xoxb-"), ("slack_app_token", "xapp-")):
        if given.get(name) and not given[name].startswith(prefix):
            problems.append(problem_line(name.upper(), f"must start with {prefix}"))
    return problems


def _database_problems(given: Mapping[str, str]) -> list[str]:
    url = given.get("database_url", "sqlite:///gatehouse.db")
    if url.startswith(("postgresql://", "postgres://")):
        return []
    if url.startswith("sqlite:///") and url != "sqlite:///" and ":memory:" not in url:
        return []
    return [problem_line("DATABASE_URL", "must start with postgresql:// or be sqlite:///<file>")]


def _inventory_problems(settings: Settings) -> list[str]:
    problems = []
    centers = settings.inventory_data_centers
    dependent = [name for name, one in centers.items() if one.base_url is None]
    if dependent:
        problems += _base_url_problems(settings.inventory_base_url, dependent)
    if "{token}" not in settings.inventory_auth_header:
        problems.append(problem_line("INVENTORY_AUTH_HEADER", "must have {token} in it"))
    return problems


def _base_url_problems(base_url: str | None, dependent: list[DataCenter]) -> list[str]:
    name = "INVENTORY_BASE_URL"
    if base_url is None:
        needed = "is required unless every data center has its own base_url"
        return [problem_line(name, needed)]
    host = URL(base_url).host or ""
    if host.endswith(".com") or dependent == ["com"]:
        return []
    return [problem_line(name, "must be on the com host, so that its suffix can be replaced")]


def _approver_problems(settings: Settings) -> list[str]:
    known = {*settings.flow_aliases, *settings.flow_aliases.values()}
    unknown = [
        name
        for name in settings.flow_approvers
        if name not in known and not (name.startswith("FW") and len(name) == len("FW") + 32)
    ]
    return [
        problem_line("FLOW_APPROVERS", f"names “{name}”, which is neither an alias nor a flow SID")
        for name in unknown
    ]
