"""What is said of settings that are wrong: the name, what is wrong, an example; never the value."""

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from yarl import URL

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


class SettingsError(Exception):
    """Some settings are wrong; `problems` has one line each, with the name and an example."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


# pydantic's kinds of errors, in the words of who sets an environment variable.
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
    "string_type": "must be a text",
    "string_pattern_mismatch": "is not of the form of the example",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "extra_forbidden": "is not known here",
}


def problem_of(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    """Say what is wrong without the value, which may be a secret."""
    name = str(error["loc"][0]).upper()
    where = " → ".join(str(part) for part in error["loc"][1:] if part != "[key]")
    what = WORDS.get(error["type"]) or _in_our_words(error["msg"])
    if name == "EMAIL_AUTH":
        what = "must be bearer or basic with an API key: account passwords ended in Q4 2020"
    return problem_line(name, f"{where}: {what}" if where else what)


def _in_our_words(message: str) -> str:
    plain = message.removeprefix("Value error, ")
    for theirs in ("Input should be", "String should", "Value should"):
        if plain.startswith(theirs):
            ours = "must be" if theirs.endswith("be") else "must"
            return ours + plain.removeprefix(theirs)
    return plain[:1].lower() + plain[1:]


def problem_line(name: str, what: str) -> str:
    """Return one line about one setting: its name, what is wrong, an example."""
    return f"{name} {what} (example: {name}={EXAMPLES[name]})"


def problems_between(
    given: Mapping[str, str], settings: "Settings", wrong: Collection[str]
) -> list[str]:
    """Return what no single setting can see.

    Args:
        given: What the environment has, by the settings' names.
        settings: Those that are right; the defaults of the others.
        wrong: The names of those that are wrong by themselves, which have had their line.
    """
    problems = _slack_problems(given) + _database_problems(given)
    if {"inventory_data_centers", "inventory_base_url"}.isdisjoint(wrong):
        problems += _inventory_problems(settings)
    if "{token}" not in settings.inventory_auth_header:
        problems.append(problem_line("INVENTORY_AUTH_HEADER", "must have {token} in it"))
    if {"flow_aliases", "flow_approvers"}.isdisjoint(wrong):
        problems += _approver_problems(settings)
    return problems


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
        return _server_problems(url)
    if url.startswith("sqlite:///") and url != "sqlite:///" and ":memory:" not in url:
        return []
    return [problem_line("DATABASE_URL", "must start with postgresql:// or be sqlite:///<file>")]


# Those that the driver takes in an address; with another one it could not even connect.
SERVER_PARAMETERS = frozenset(
    {"host", "port", "passfile", "sslmode", "ssl", "target_session_attrs"}
)


def _server_problems(url: str) -> list[str]:
    try:
        address = URL(url)
    except ValueError:
        address = URL()
    if not address.path.strip("/"):
        return [problem_line("DATABASE_URL", "is not an address with a database")]
    unknown = sorted(set(address.query) - SERVER_PARAMETERS)
    what = f"has parameters that are not taken here: {', '.join(unknown)}"
    return [problem_line("DATABASE_URL", what)] if unknown else []


def _inventory_problems(settings: "Settings") -> list[str]:
    centers = settings.inventory_data_centers
    dependent: list[str] = [name for name, one in centers.items() if one.base_url is None]
    return _base_url_problems(settings.inventory_base_url, dependent) if dependent else []


def _base_url_problems(base_url: str | None, dependent: list[str]) -> list[str]:
    name = "INVENTORY_BASE_URL"
    if base_url is None:
        needed = "is required unless every data center has its own base_url"
        return [problem_line(name, needed)]
    host = URL(base_url).host or ""
    if host.endswith(".com") or dependent == ["com"]:
        return []
    return [problem_line(name, "must be on the com host, so that its suffix can be replaced")]


def _approver_problems(settings: "Settings") -> list[str]:
    aliases = settings.flow_aliases
    sids = [aliases.get(name, name) for name in settings.flow_approvers]
    unknown = [
        problem_line("FLOW_APPROVERS", f"names “{sid}”, which is neither an alias nor a flow SID")
        for sid in sids
        if not re.fullmatch(FLOW_SID, sid)
    ]
    # Case does not tell flows apart.
    same = [sid.upper() for sid in sids]
    twice = dict.fromkeys(sid for sid in sids if same.count(sid.upper()) > 1)
    return unknown + [
        problem_line("FLOW_APPROVERS", f"names the flow {sid} twice, by alias and SID")
        for sid in twice
    ]
