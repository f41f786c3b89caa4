"""Error lines for invalid settings: the name, problem, and example, but not the value."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rapidfuzz.distance import OSA
from yarl import URL

from bot.approvals.rules import EVERY_FLOW
from bot.ops.secrets import secret_problems
from bot.store.postgres import SCHEMES, AddressError, connection_parameters

if TYPE_CHECKING:
    from bot.settings import Settings

FLOW_SID = r"FW[0-9a-fA-F]{32}"

EXAMPLES: Mapping[str, str] = {
    "SLACK_BOT_TOKEN": "xoxb-1234-abcd",
    "SLACK_SIGNING_SECRET": "8f742231b10e8888abcd99yyyzzz85a5",
    "SLACK_APP_TOKEN": "xapp-1-A012-3456-abcd",
    "SLACK_API_URL": "https://slack.com/api/",
    "HOST": "0.0.0.0",  # noqa: S104 - an example
    "PORT": "3000",
    "METRICS_TOKEN": "a-long-random-word",
    "DATABASE_URL": "postgresql://gatehouse@db.example.com/gatehouse",
    "DATABASE_POOL": "10",
    "ROLES": '{"viewer": ["*"], "operator": ["S0TEAM"], "approver": ["U0ADA"]}',
    "ACCESS_CONTACT": "U0ADAM",
    "ALERTS_CHANNEL": "C0123ALERTS",
    "APPROVALS_CHANNEL": "C0123APPROVE",
    "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "…"}}',
    "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
    "INVENTORY_AUTH": "query",
    "INVENTORY_AUTH_HEADER": "Bearer {token}",
    "INVENTORY_SCOPE": "ServiceInventory.settings.READ",
    "INVENTORY_DEFAULT_PLAN": "free",
    "INVENTORY_PLANS": '{"10234695": "premium"}',
    "INVENTORY_RESERVE": '{"eu/10234695": {"minute": 30, "day": 1000}}',
    "INVENTORY_CACHE_SECONDS": "300",
    "INVENTORY_WATCH": "on",
    "FLOW_BASE_URL": "https://flows.example.com",
    "FLOW_ACCOUNT_SID": "AC0123456789abcdef0123456789abcdef",
    "FLOW_AUTH_TOKEN": "a1b2c3",
    "FLOW_FORM_FIELD": "testUsers",
    "FLOW_ALIASES": '{"welcome": "FW0123456789abcdef0123456789abcdef"}',
    "FLOW_APPROVERS": '{"welcome": ["U0ADA", "S0TEAM"]}',
    "FLOW_POLICIES": '{"welcome": {"approvers": ["U0ADA"], "longest": "7d"}}',
    "APPROVALS_NEEDED": "1",
    "ALLOW_SELF_APPROVAL": "false",
    "REQUEST_HOURS": "24",
    "REMIND_HOURS": "4",
    "EMAIL_BASE_URL": "https://email.example.com",
    "EMAIL_API_KEY": "SG.abc",
    "EMAIL_AUTH": "bearer",
    "COMMANDS_PER_MINUTE": "30",
    "GATEWAY_PORT": "3001",
    "GATEWAY_HOST": "127.0.0.1",
    "GATEWAY_CLIENTS": (
        '{"nightly": {"token_sha256":'
        ' "e6267729024129bcb9f8ca4911ff7ff135181e5c637b4114650c5d8d54c148d6",'
        ' "organizations": ["eu/10234695"], "methods": ["GET"], "share": 0.5}}'
    ),
    "AUDIT_KEY": "32 random bytes in hex",
    "AUDIT_WITNESS": "on",
    "RETAIN_DAYS": "400",
    "LOG_LEVEL": "INFO",
    "LOG_FORMAT": "json",
}


class SettingsError(Exception):
    """Some settings are invalid; `problems` has a line for each, with name and example."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


# pydantic's error types, worded for people who set environment variables.
WORDS = {
    "missing": "is required",
    "bool_parsing": "must be on or off",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "string_type": "must be a string",
    "string_pattern_mismatch": "doesn't look like the example",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "extra_forbidden": "is not a known key",
}

PREFIXES = re.compile(
    r"^(GATEHOUSE|GATEWAY|INVENTORY|FLOW|EMAIL|SLACK|APPROVALS?|AUDIT|METRICS?|REQUEST|REMIND|ROLES)_"
)
# Short or common names, for which a similar variable is probably not a mistake.
COMMON = frozenset({"HOST", "PORT", "ROLES", "LOG_LEVEL", "LOG_FORMAT"})
LONG_NAME = 12
# Kubernetes sets these in every pod if there is a Service named "gatehouse".
SERVICE_LINK = re.compile(r"\w+_(SERVICE_(HOST|PORT)|PORT_[0-9]+_)\w*=|\w+_PORT=(tcp|udp)://")
QUOTES = ("'", '"')
CHANNELS = frozenset({"ALERTS_CHANNEL", "APPROVALS_CHANNEL"})


def problem_of(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    """Describe the problem without quoting the value, which may be a secret."""
    name = str(error["loc"][0]).upper()
    where = " → ".join(str(part) for part in error["loc"][1:] if part != "[key]")
    problem = WORDS.get(error["type"])
    if problem is None:
        message = error["msg"].removeprefix("Value error, ")
        ours = re.sub("^(Input|String|Value) should( be)?", r"must\2", message)
        problem = message[:1].lower() + message[1:] if ours == message else ours
    if name in CHANNELS and error["type"] == "string_pattern_mismatch":
        problem = "doesn't look like a channel ID"
    if name == "EMAIL_AUTH":
        problem = "must be bearer or basic with an API key: account passwords ended in Q4 2020"
    return problem_line(name, f"{where}: {problem}" if where else problem)


def problem_line(name: str, problem: str) -> str:
    """Return a setting's line: its name, the problem, and an example."""
    return f"{name} {problem} (example: {name}={EXAMPLES[name]})"


def problems_between(
    given: Mapping[str, str], settings: "Settings", wrong: Collection[str]
) -> list[str]:
    """Return problems that can only be found by comparing settings.

    Args:
        given: The values in the environment, by setting name.
        settings: The valid settings, and defaults for other settings.
        wrong: The names of invalid settings, which already have a line.
    """
    problems = [*_alone(given, settings), *_version_problems(settings)]
    if {"inventory_data_centers", "inventory_base_url"}.isdisjoint(wrong):
        problems += _inventory_problems(settings)
    if "flow_aliases" not in wrong:
        problems += _alias_problems(settings.flow_aliases)
    if {"slack_api_url", "inventory_data_centers"}.isdisjoint(wrong):
        told = {name for name, _ in problems}
        centers = settings.inventory_data_centers.values()
        credentials = [secret for center in centers for secret in center.secrets()]
        weak = secret_problems(given, settings.slack_api_url, credentials)
        problems += [(name, problem) for name, problem in weak if name not in told]
    if {"flow_aliases", "flow_approvers"}.isdisjoint(wrong):
        problems += _flow_problems("FLOW_APPROVERS", settings.flow_approvers, settings)
    if {"flow_aliases", "flow_policies"}.isdisjoint(wrong):
        named = [name for name in settings.flow_policies if name != EVERY_FLOW]
        problems += _flow_problems("FLOW_POLICIES", named, settings)
        problems += _policy_problems(settings)
    if {"gateway_clients", "gateway_port", "port", "inventory_data_centers"}.isdisjoint(wrong):
        problems += _gateway_problems(given, settings)
    return [problem_line(*problem) for problem in problems]


def mistyped_problems(environment: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that looks like a misspelled setting, and is ignored."""
    problems = []
    for name, value in environment.items():
        for known in sorted(EXAMPLES.keys() - COMMON):
            most = 2 if len(known) >= LONG_NAME else 1
            is_close = OSA.distance(name.upper(), known, score_cutoff=most) <= most
            if is_close and name not in EXAMPLES and value.strip():
                problem = (
                    f"is probably misspelled as {name}, which isn't a setting: correct the name"
                )
                problems.append(problem_line(known, problem))
                break
    return problems


def unknown(environment: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return names that have Gatehouse's prefixes but aren't settings."""
    names = frozenset(known)
    return sorted(
        name
        for name, value in environment.items()
        if name not in names and PREFIXES.match(name) and not SERVICE_LINK.match(f"{name}={value}")
    )


# These values may span several lines.
JSON_SETTINGS = frozenset(
    {
        *("roles", "inventory_data_centers", "inventory_plans", "flow_aliases", "flow_approvers"),
        *("flow_policies", "gateway_clients", "inventory_reserve"),
    }
)
# A setting, and the problem with it.
Problems = Iterator[tuple[str, str]]


def _alone(given: Mapping[str, str], settings: "Settings") -> Problems:
    """Yield problems with single values that pydantic's types can't express."""
    if not given.get("slack_signing_secret") and not given.get("slack_app_token"):
        yield "SLACK_SIGNING_SECRET", "is required unless SLACK_APP_TOKEN is set"
    secret = given.get("slack_signing_secret", "")
    if secret.startswith(("xox", "xapp-")) or " " in secret:
        yield "SLACK_SIGNING_SECRET", "isn't a signing secret: copy it from Basic Information"
    for name, prefix in (("slack_bot_token", "xoxb-"), ("slack_app_token", "xapp-")):
        token = given.get(name, prefix)
        if not token.startswith(prefix):
            quote = ", and starts with a quote: remove the quotes"
            yield name.upper(), f"must start with {prefix}{quote if token[0] in QUOTES else ''}"
    problem = _database_problem(given.get("database_url", "sqlite:///gatehouse.db"))
    if problem:
        yield "DATABASE_URL", problem
    for name, value in given.items():
        if name not in JSON_SETTINGS and not value.isprintable():
            yield name.upper(), "has a line break or another invisible character"
    if "{token}" not in settings.inventory_auth_header:
        yield "INVENTORY_AUTH_HEADER", "must contain {token}"


def _version_problems(settings: "Settings") -> Problems:
    versions = (
        ("FLOW_BASE_URL", settings.flow_base_url, "/v2"),
        ("EMAIL_BASE_URL", settings.email_base_url, "/v3"),
    )
    for name, address, version in versions:
        if address and URL(address).path.rstrip("/").endswith(version):
            yield name, f"must not end with {version}"


def _database_problem(url: str) -> str | None:
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() in SCHEMES:
        try:
            connection_parameters(url)
        except AddressError as error:
            return str(error)
        return None
    if scheme != "sqlite" or not rest.startswith("/") or rest == "/" or ":memory:" in rest:
        return "must start with postgresql:// or be sqlite:///<file>"
    return "has parameters, which SQLite doesn't support" if "?" in rest else None


def _inventory_problems(settings: "Settings") -> Problems:
    centers = settings.inventory_data_centers
    dependent: list[str] = [name for name, center in centers.items() if center.base_url is None]
    if not dependent:
        return
    if settings.inventory_base_url is None:
        yield "INVENTORY_BASE_URL", "is required unless every data center has its own base_url"
        return
    host = URL(settings.inventory_base_url).host or ""
    if not host.endswith(".com") and dependent != ["com"]:
        problem = "must be on the com host, so that its suffix can be replaced"
        yield "INVENTORY_BASE_URL", problem


def _alias_problems(aliases: Mapping[str, str]) -> Problems:
    by_name: dict[str, set[str]] = {}
    for alias, sid in aliases.items():
        by_name.setdefault(alias.casefold(), set()).add(sid.upper())
        if re.fullmatch(FLOW_SID, alias) and alias.upper() != sid.upper():
            yield "FLOW_ALIASES", f"has the alias “{alias}”, which is another flow's SID"
    both = [f"“{alias}”" for alias in aliases if len(by_name[alias.casefold()]) > 1]
    if both:
        problem = f"has {' and '.join(both)}, which differ only in case, for different flows"
        yield "FLOW_ALIASES", problem


def _flow_problems(setting: str, names: Collection[str], settings: "Settings") -> Problems:
    sids = [settings.flow_aliases.get(name, name) for name in names]
    for sid in sids:
        if not re.fullmatch(FLOW_SID, sid):
            yield setting, f"names “{sid}”, which is neither an alias nor a flow SID"
    # SIDs ignore case.
    same = Counter(sid.upper() for sid in sids)
    for sid in dict.fromkeys(sids):
        if same[sid.upper()] > 1:
            yield setting, f"names the flow {sid} twice, by alias and SID"


def _policy_problems(settings: "Settings") -> Problems:
    policy = settings.policy
    for name in settings.flow_policies:
        sid = name if name == EVERY_FLOW else settings.flow_aliases.get(name, name)
        rules = policy.of_flow(sid)
        approvers = rules.approvers or ()
        are_people = approvers and not any(approver.startswith("S") for approver in approvers)
        checks = (
            (
                rules.escalate_after_seconds is not None and not rules.escalate_to,
                "escalate_after needs escalate_to",
            ),
            (
                rules.escalate_to and rules.escalate_after_seconds is None,
                "escalate_to needs escalate_after",
            ),
            (rules.auto_remove and rules.auto is None, "auto_remove needs auto"),
            (
                are_people and len(set(approvers)) < rules.approvals_needed,
                "needs more approvals than it has approvers",
            ),
        )
        for is_wrong, problem in checks:
            if is_wrong:
                yield "FLOW_POLICIES", f"{name}: {problem}"


def _gateway_problems(given: Mapping[str, str], settings: "Settings") -> Problems:
    clients, port = settings.gateway_clients, settings.gateway_port
    if port and port == settings.port:
        yield "GATEWAY_PORT", "must differ from PORT"
    hashes = Counter(client.token_sha256 for client in clients.values())
    same = [name for name, client in clients.items() if hashes[client.token_sha256] > 1]
    if same:
        yield "GATEWAY_CLIENTS", f"gives the same token to {' and '.join(same)}"
    if not given.get("inventory_data_centers"):
        return
    for name, client in clients.items():
        paths = () if client.organizations == "*" else client.organizations
        centers = {path.partition("/")[0] for path in paths}
        for center in sorted(centers - set(map(str, settings.inventory_data_centers))):
            problem = f"names the data center {center}, which is not in INVENTORY_DATA_CENTERS"
            yield "GATEWAY_CLIENTS", f"{name}: {problem}"
