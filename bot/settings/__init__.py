"""Reads the settings. Errors name each invalid setting and show an example, but never a secret."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yarl import URL

from bot.approvals.rules import EVERY_FLOW
from bot.ids import FLOW_SID
from bot.ops.secrets import looks_secret, secret_problems
from bot.permissions import EVERY_FULL_MEMBER, Role
from bot.settings.files import CONFIG, EXAMPLES, SettingsError, Sources, in_environment, in_toml
from bot.settings.model import (
    DATA_CENTERS,
    HOME,
    ORGANIZATION_PATH,
    PROXIES,
    Settings,
    is_secret,
    keys_in,
)
from bot.spelling import closest

__all__ = ["EXAMPLES", "Settings", "SettingsError"]

# Stand-ins for missing or invalid required settings, used to check the other settings.
PLACEHOLDERS = {"slack_bot_token": "xoxb-", "alerts_channel": "C0", "approvals_channel": "C0"}

UNKNOWN_KEY = "is not a known key"
# Messages for pydantic's error types, written for people who set environment variables.
WORDS = {
    "missing": "is required",
    "bool_parsing": "must be on or off",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "dataclass_type": "must be a JSON object",
    "string_type": "must be a string",
    "string_pattern_mismatch": "doesn't look like the example",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "path_not_file": "doesn't point to a file",
    "path_not_directory": "doesn't point to a directory",
    "extra_forbidden": UNKNOWN_KEY,
    "unexpected_keyword_argument": UNKNOWN_KEY,
}
# An ID or a name in a table is shown in errors. Other values could be secrets.
SHOWN = re.compile(r"(?!.*(?i:secret|passw|token))[#@]?[\w.:/ -]{1,40}")

# Settings of earlier versions.
APPROVERS, ENV_FILE = "flow_approvers", "GATEHOUSE_ENV_FILE"

# A variable of several words is a misspelled setting if its name is at least this similar.
MISSPELLED = 0.92
# Pairs of a setting's name and a problem with its value.
Problems = Iterator[tuple[str, str]]


def settings_from(sources: Sources) -> Settings:
    """Return the settings.

    Raises:
        SettingsError: Some settings are invalid or missing. The error names all of them.
    """
    problems = [*_removed(sources)]
    values = {**sources.table, **_in_environment(sources.environment)}
    values.pop(APPROVERS, None)
    wrong: set[str] = set()
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        details = error.errors()
        problems += [_wrong_value(sources, detail) for detail in details]
        wrong = {str(detail["loc"][0]) for detail in details}
        right = {name: value for name, value in values.items() if name not in wrong}
        settings = Settings.model_validate({**PLACEHOLDERS, **right})
    between = [
        *_problems_between(settings, sources.environment, wrong),
        *secret_problems(values, settings.slack_api_url),
    ]
    problems += [_line(sources, name, problem) for name, problem in between if name not in wrong]
    problems += _mistyped(sources.environment)
    if problems:
        # What stands in the wrong place can be wrong twice, as a key and by its value.
        raise SettingsError(list(dict.fromkeys(problems)))
    return settings


def _in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the settings in the environment."""
    names = {name.upper(): name for name in Settings.model_fields}
    # As in other programs, the lowercase names of proxies take precedence.
    names |= {name: name for name in PROXIES}
    return {name: environment[key] for key, name in names.items() if key in environment}


# The lines of errors


def _wrong_value(sources: Sources, error: ErrorDetails) -> str:
    """Return the error line for a validation error."""
    name, *parts = [str(part) for part in error["loc"] if part != "[key]"]
    if name not in Settings.model_fields:
        meant = "".join(
            f" Did you mean {near}? (example: {in_toml(near)})"
            for near in closest(name, Settings.model_fields)
        )
        return f"{_printed(name)}{sources.place} is not a setting.{meant}"
    *table, key = (name, *parts)
    is_setting = key.lower() in Settings.model_fields
    if table and name in sources.table and is_setting and key not in keys_in(*table):
        return (
            f"{key.upper()}{sources.place} is in the table [{'.'.join(map(_printed, table))}]. Move"
            f" it above the first table (example: {in_toml(key.lower())})"
        )
    value = error.get("input")
    problem = WORDS.get(error["type"]) or re.sub(
        "^(Input|String|Value) should( be)?", r"must\2", error["msg"].removeprefix("Value error, ")
    )
    if problem == UNKNOWN_KEY:
        problem += f".{_closest(key, keys_in(*table))}"
        if (center := ".".join(parts)) in DATA_CENTERS:
            problem = f'is not a known key. Write "{center}" in quotes'
    elif error["loc"][-1] != "[key]" and _may_show(name, parts, value):
        problem = f"“{value}” {problem}"
    where = f"{' → '.join(map(_printed, parts))}: " if parts else ""
    return _line(sources, name, f"{where}{problem}")


def _may_show(name: str, parts: Sequence[str], value: object) -> bool:
    """Return True if the value is a wrong ID or a wrong entry of a table, and no secret."""
    if is_secret(name) or "token_sha256" in parts or not isinstance(value, str):
        return False
    is_short = bool(parts) or name.endswith(("_channel", "_contact"))
    return is_short and SHOWN.fullmatch(value) is not None and not looks_secret(value)


def _printed(key: str) -> str:
    return "(a key that looks like a secret)" if looks_secret(key) else key


def _line(sources: Sources, name: str, problem: str) -> str:
    """Return an error line with the setting's name and place, the problem, and an example."""
    if name in sources.table and name not in _in_environment(sources.environment):
        return f"{name.upper()}{sources.place} {problem} (example: {in_toml(name)})"
    return f"{name.upper()} {problem} (example: {in_environment(name)})"


def _closest(name: str, known: Iterable[str]) -> str:
    return "".join(f" Did you mean {near}?" for near in closest(name, known))


# Names that aren't settings, or that stand in the wrong place


def _removed(sources: Sources) -> Iterator[str]:
    """Yield an error line for each setting that an earlier version had."""
    if ENV_FILE in sources.environment:
        yield (
            f"{ENV_FILE} was removed. Write the settings into a TOML file, and set {CONFIG} to its"
            f" path, or set them in the environment (example: {CONFIG}=gatehouse.toml)"
        )
    name = APPROVERS.upper()
    if name in sources.environment:
        example = '{"welcome": {"approvers": ["U0ADA"]}}'
    elif APPROVERS in sources.table:
        example = '[flow_policies.welcome] approvers = ["U0ADA"]'
    else:
        return
    yield (
        f"{name} was removed. Add its people to FLOW_POLICIES as the flow's approvers: {example}."
        " Where “*” has approvers, these counted before"
    )


def _mistyped(environment: Mapping[str, str]) -> list[str]:
    """Return an error line for each variable whose name looks like a misspelled setting."""
    return [
        f"{near} is probably misspelled as {name}, which isn't a setting. Correct the name"
        f" (example: {in_environment(near.lower())})"
        for name in sorted(environment.keys() - {*EXAMPLES, *PROXIES})
        if "_" in name
        for near in closest(name, EXAMPLES, likeness=MISSPELLED)
    ]


# Settings that don't fit together


def _problems_between(
    settings: Settings, environment: Mapping[str, str], wrong: Collection[str]
) -> Problems:
    """Yield the problems that concern several settings or entries.

    The settings in `wrong` have other values here.
    """
    aliases, clients = settings.flow_aliases, settings.gateway_clients
    if not settings.slack_signing_secret and not settings.slack_app_token:
        yield "slack_signing_secret", "is required unless SLACK_APP_TOKEN is set"
    if environment.get("DYNO") and "database_url" not in settings.model_fields_set:
        yield "database_url", "is required, because this platform's disk is erased at each restart"
    if settings.gateway_port and settings.gateway_port == settings.port:
        yield "gateway_port", "must differ from PORT"
    if EVERY_FULL_MEMBER in settings.roles.get(Role.ADMIN, ()):
        problem = "can't be *, because admins apply changes without approval. List people or groups"
        yield "roles", f"admin: {problem}"
    if len({alias.casefold() for alias in aliases}) < len(aliases):
        yield "flow_aliases", "has aliases that differ only in case"
    if any(re.fullmatch(FLOW_SID, alias) for alias in aliases):
        yield "flow_aliases", "has an alias that looks like another flow's SID"
    if len({client.token_sha256 for client in clients.values()}) < len(clients):
        yield "gateway_clients", "gives the same token to two clients"
    if "flow_aliases" not in wrong:
        yield from _flows(settings)
    yield from _policies(settings)
    yield from _roots(settings)
    yield from _organizations(settings, wrong)


def _flows(settings: Settings) -> Problems:
    """Yield the names that are neither an alias nor a SID, and policies of the same flow."""
    rows = [("flow_policies", "", name) for name in settings.flow_policies if name != EVERY_FLOW]
    for name, client in settings.gateway_clients.items():
        rows += [("gateway_clients", f"{name}: ", flow) for flow in client.flows]
    for setting, where, name in rows:
        if not re.fullmatch(FLOW_SID, settings.flow_aliases.get(name, name)):
            problem = f"refers to “{_printed(name)}”, which is neither an alias nor a flow SID."
            yield setting, f"{where}{problem}{_closest(name, settings.flow_aliases)}"
    names: dict[str, str] = {}
    for name in settings.flow_policies:
        same = names.setdefault(settings.sid_of(name), name)
        if same != name:
            yield "flow_policies", f"lists one flow twice: as “{same}” and as “{name}”"


def _policies(settings: Settings) -> Problems:
    for key in settings.flow_policies:
        name, rules = _printed(key), settings.policy.of_flow(settings.sid_of(key))
        if (rules.escalate_after_seconds is None) != (rules.escalate_to is None):
            yield "flow_policies", f"{name}: needs both escalate_after and escalate_to"
        if rules.auto_remove and rules.auto is None:
            yield "flow_policies", f"{name}: auto_remove needs auto"
        approvers = rules.approvers or ()
        # A group can have any number of members.
        has_group = any(approver.startswith("S") for approver in approvers)
        if approvers and not has_group and len(set(approvers)) < rules.approvals_needed:
            yield "flow_policies", f"{name}: needs more approvals than it has approvers"


def _roots(settings: Settings) -> Problems:
    """Yield the addresses that are missing, and those that two data centers or APIs share."""
    centers = settings.inventory_data_centers
    dependent = [name for name, center in centers.items() if center.base_url is None]
    if dependent and settings.inventory_base_url is None:
        yield "inventory_base_url", "is required unless every data center has its own base_url"
        return
    host = URL(settings.inventory_base_url or "").host or ""
    if {*dependent} - {HOME} and not host.endswith(f".{HOME}"):
        problem = (
            "must have a host that ends in .com, because Gatehouse replaces .com for other data"
            " centers"
        )
        yield "inventory_base_url", problem
        return
    rows = [("inventory_data_centers", str(name), settings.root_of(name)) for name in centers]
    rows += [("apis", name, URL(api.base_url)) for name, api in settings.apis.items()]
    names: dict[object, str] = {}
    for setting, name, root in rows:
        host = (root.host or "").removesuffix(".")
        same = names.setdefault((host, root.port, root.path.rstrip("/")), name)
        if same != name:
            yield setting, f"{name}: has the same address as {same}"


def _organizations(settings: Settings, wrong: Collection[str]) -> Problems:
    """Yield the keys that aren't `<data center>/<ID>`, for a configured data center."""
    centers = settings.inventory_data_centers
    rows = [("inventory_plans", "", path) for path in settings.inventory_plans]
    rows += [("inventory_reserve", "", path) for path in settings.inventory_reserve if path != "*"]
    for name, client in settings.gateway_clients.items():
        theirs = [path for path in client.organizations if path not in {"*", *settings.apis}]
        if "apis" in wrong:
            # The others may be APIs.
            theirs = [path for path in theirs if path.isdecimal() or "/" in path]
        rows += [("gateway_clients", f"{name}: ", path) for path in theirs]
    for setting, where, path in rows:
        problem = ""
        if path.isdecimal():
            keys = " or ".join(f'"{name}/{path}"' for name in centers or ["<data center>"])
            problem = f"{path} has no data center. Write {keys}"
        elif not re.fullmatch(ORGANIZATION_PATH, path):
            problem = f"{_printed(path)} must be <data center>/<organization ID>"
            if setting == "gateway_clients":
                problem += f" or an API in APIS.{_closest(path, settings.apis)}"
        elif "inventory_data_centers" not in wrong and path.partition("/")[0] not in centers:
            problem = f"{path} isn't in a configured data center"
        if problem:
            yield setting, where + problem
