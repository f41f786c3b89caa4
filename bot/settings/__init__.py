"""Reads the settings. Errors name each invalid setting and show an example, but never a secret."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yarl import URL

from bot.approvals.rules import EVERY_FLOW
from bot.ids import FLOW_SID
from bot.ops.secrets import looks_secret, secret_problems
from bot.settings.files import EXAMPLES, in_environment, in_toml, toml_table
from bot.settings.model import (
    DATA_CENTERS,
    ORGANIZATION_PATH,
    PROXIES,
    Settings,
    is_secret,
    keys_in,
)
from bot.settings.sources import CONFIG, SettingsError, Sources
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
AUDIT_KEY = "AUDIT_KEY"
AUDIT_KEY_UNUSED = "is no longer used, because audit log entries aren't signed. Remove it."

# A variable of several words is a misspelled setting if its name is at least this similar.
MISSPELLED = 0.92
# Pairs of a setting's name and a problem with its value.
Problems = Iterator[tuple[str, str]]


def settings_from(sources: Sources) -> Settings:
    """Return the settings.

    Raises:
        SettingsError: Some settings are invalid or missing. The error names all of them.
    """
    moved: list[str] = []
    table = _moved(sources, sources.table, moved)
    known = {name: value for name, value in table.items() if name in Settings.model_fields}
    given = {**known, **_in_environment(sources.environment)}
    details: list[ErrorDetails] = []
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        details = error.errors()
    wrong = {str(detail["loc"][0]) for detail in details}
    if wrong:
        right = {name: value for name, value in given.items() if name not in wrong}
        settings = Settings.model_validate({**PLACEHOLDERS, **right})
    between = [
        *_problems_between(settings, sources.environment, wrong),
        *secret_problems(given, settings.slack_api_url),
    ]
    unknown = sources.table.keys() - known.keys() - {APPROVERS}
    problems = [
        *_removed(sources),
        *moved,
        *(
            f"{_printed(name)} in {sources.file} is not a setting."
            + "".join(
                f" Did you mean {near}? (example: {in_toml(near)})"
                for near in closest(name, Settings.model_fields)
            )
            for name in unknown
        ),
        *(_wrong_value(sources, detail) for detail in _innermost(details)),
        *(
            _line(sources, name.lower(), problem)
            for name, problem in between
            if name.lower() not in wrong
        ),
        *_mistyped(sources.environment),
    ]
    if problems:
        raise SettingsError(problems)
    return settings


def _innermost(details: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Yield the errors, except those of a list that contains another error."""
    places = [detail["loc"] for detail in details]
    for detail in details:
        place = detail["loc"]
        if not any(other != place and other[: len(place)] == place for other in places):
            yield detail


def _wrong_value(sources: Sources, error: ErrorDetails) -> str:
    """Return the error line for a validation error."""
    name, *parts = [str(part) for part in error["loc"] if part != "[key]"]
    problem, value = phrase_of(error), error.get("input")
    if problem == UNKNOWN_KEY:
        problem += f".{_closest(parts[-1], keys_in(name, *parts[:-1]))}"
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


def _moved(
    sources: Sources, table: Mapping[str, object], moved: list[str], *place: str
) -> dict[str, object]:
    """Return a table without settings that stand below its heading. Add a line for each of them."""
    kept: dict[str, object] = {}
    for key, value in table.items():
        is_known = not place or key in keys_in(*place) or re.fullmatch(FLOW_SID, str(value))
        if isinstance(value, dict):
            kept[key] = _moved(sources, value, moved, *place, key)
        elif is_known or key.lower() not in Settings.model_fields:
            kept[key] = value
        else:
            heading = ".".join(map(_printed, place))
            moved.append(
                f"{key.upper()} in {sources.file} is in the table [{heading}]. Move it above the"
                f" first table (example: {in_toml(key.lower())})"
            )
    return kept


def _removed(sources: Sources) -> Iterator[str]:
    """Yield an error line for each setting that an earlier version had."""
    if ENV_FILE in sources.environment:
        yield (
            f"{ENV_FILE} was removed. Write the settings into a TOML file, and set {CONFIG} to its"
            f" path, or set them in the environment (example: {CONFIG}=gatehouse.toml)"
        )
    name = APPROVERS.upper()
    value = sources.environment.get(name, sources.table.get(APPROVERS))
    if value is None:
        return
    added = {"welcome": {"approvers": ["U0ADA"]}}
    with suppress(ValueError, AttributeError):
        flows: Any = json.loads(value) if isinstance(value, str) else value
        added = {flow: {"approvers": people} for flow, people in flows.items()} or added
    policy = json.dumps(added, ensure_ascii=False)
    if name not in sources.environment:
        policy = ", ".join(toml_table({"flow_policies": {flow: added[flow]}}) for flow in added)
    yield (
        f"{name} was removed. Add its people to FLOW_POLICIES as the flow's approvers: {policy}."
        " Where “*” has approvers, these counted before"
    )


def _problems_between(
    settings: Settings, environment: Mapping[str, str], wrong: Collection[str]
) -> Problems:
    """Yield the problems that concern several settings. Those in `wrong` have other values."""
    if not settings.slack_signing_secret and not settings.slack_app_token:
        yield "SLACK_SIGNING_SECRET", "is required unless SLACK_APP_TOKEN is set"
    if environment.get("DYNO") and "database_url" not in settings.model_fields_set:
        yield "DATABASE_URL", "is required, because this platform's disk is erased at each restart"
    if settings.gateway_port and settings.gateway_port == settings.port:
        yield "GATEWAY_PORT", "must differ from PORT"
    if "flow_aliases" not in wrong:
        yield from _flows(settings)
        yield from _flows_of_clients(settings)
    yield from _policies(settings)
    yield from _roots(settings)
    yield from _organizations(settings, is_known="inventory_data_centers" not in wrong)


def _in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the settings in the environment."""
    names = {name.upper(): name for name in Settings.model_fields}
    # As in other programs, the lowercase names of proxies take precedence.
    names |= {name: name for name in PROXIES}
    return {name: environment[key] for key, name in names.items() if key in environment}


def phrase_of(error: ErrorDetails) -> str:
    """Describe a validation error without quoting the value, which may be a secret."""
    if error["type"] in WORDS:
        return WORDS[error["type"]]
    message = error["msg"].removeprefix("Value error, ")
    return re.sub("^(Input|String|Value) should( be)?", r"must\2", message)


def _is_in_file(sources: Sources, name: str) -> bool:
    return name in sources.table and name not in _in_environment(sources.environment)


def _line(sources: Sources, name: str, problem: str) -> str:
    """Return an error line with the setting's name and place, the problem, and an example."""
    if _is_in_file(sources, name):
        place = f" in {sources.file}" if sources.file else ""
        return f"{name.upper()}{place} {problem} (example: {in_toml(name)})"
    return f"{name.upper()} {problem} (example: {in_environment(name)})"


def _closest(name: str, known: Iterable[str]) -> str:
    return "".join(f" Did you mean {near}?" for near in closest(name, known))


def _mistyped(environment: Mapping[str, str]) -> list[str]:
    """Return an error line for each variable whose name looks like a misspelled setting."""
    return [
        f"{near} is probably misspelled as {name}, which isn't a setting. Correct the name"
        f" (example: {in_environment(near.lower())})"
        for name in sorted(environment.keys() - {*EXAMPLES, *PROXIES})
        if "_" in name
        for near in closest(name, EXAMPLES, likeness=MISSPELLED)
    ]


def _roots(settings: Settings) -> Problems:
    centers = settings.inventory_data_centers
    dependent = [str(name) for name, center in centers.items() if center.base_url is None]
    if dependent and settings.inventory_base_url is None:
        yield "INVENTORY_BASE_URL", "is required unless every data center has its own base_url"
        return
    host = URL(settings.inventory_base_url or "").host or ""
    if dependent not in ([], ["com"]) and not host.endswith(".com"):
        problem = (
            "must have a host that ends in .com, because Gatehouse replaces .com for other data"
            " centers"
        )
        yield "INVENTORY_BASE_URL", problem
        return
    roots: dict[object, str] = {}
    for name in centers:
        root = settings.root_of(name)
        same = roots.setdefault((root.host, root.port, root.path.rstrip("/")), name)
        if same != name:
            yield "INVENTORY_DATA_CENTERS", f"{name}: has the same address as {same}"
    for api_name, api in settings.apis.items():
        root = URL(api.base_url)
        same = roots.setdefault((root.host, root.port, root.path.rstrip("/")), api_name)
        if same != api_name:
            yield "APIS", f"{api_name}: has the same address as {same}"


def _flows(settings: Settings) -> Problems:
    known: dict[str, str] = {}
    for name in settings.flow_policies:
        # SIDs are case-insensitive.
        sid = settings.sid_of(name)
        if name != EVERY_FLOW and not re.fullmatch(FLOW_SID, settings.flow_aliases.get(name, name)):
            problem = f"refers to “{_printed(name)}”, which is neither an alias nor a flow SID."
            yield "FLOW_POLICIES", problem + _closest(name, settings.flow_aliases)
        elif sid in known:
            yield "FLOW_POLICIES", f"lists one flow twice: as “{known[sid]}” and as “{name}”"
        known[sid] = name


def _flows_of_clients(settings: Settings) -> Problems:
    for name, client in settings.gateway_clients.items():
        for flow in client.flows:
            if not re.fullmatch(FLOW_SID, settings.flow_aliases.get(flow, flow)):
                problem = f"{name}: “{_printed(flow)}” is neither an alias nor a flow SID."
                yield "GATEWAY_CLIENTS", problem + _closest(flow, settings.flow_aliases)


def _policies(settings: Settings) -> Problems:
    for key in settings.flow_policies:
        name, rules = _printed(key), settings.policy.of_flow(settings.sid_of(key))
        if (rules.escalate_after_seconds is None) != (rules.escalate_to is None):
            yield "FLOW_POLICIES", f"{name}: needs both escalate_after and escalate_to"
        if rules.auto_remove and rules.auto is None:
            yield "FLOW_POLICIES", f"{name}: auto_remove needs auto"
        approvers = rules.approvers or ()
        # A group can have any number of members.
        has_group = any(approver.startswith("S") for approver in approvers)
        if approvers and not has_group and len(set(approvers)) < rules.approvals_needed:
            yield "FLOW_POLICIES", f"{name}: needs more approvals than it has approvers"


def _organizations(settings: Settings, *, is_known: bool) -> Problems:
    """Yield the keys that aren't `<data center>/<ID>`, for a configured data center."""
    centers = settings.inventory_data_centers
    named = [("INVENTORY_PLANS", "", path) for path in settings.inventory_plans]
    named += [("INVENTORY_RESERVE", "", path) for path in settings.inventory_reserve]
    for name, client in settings.gateway_clients.items():
        theirs = (path for path in client.organizations if path not in settings.apis)
        named += [("GATEWAY_CLIENTS", f"{name}: ", path) for path in theirs]
    for setting, where, path in named:
        if path == "*" and setting != "INVENTORY_PLANS":
            continue
        if path.isdecimal():
            keys = " or ".join(f'"{name}/{path}"' for name in centers or ["<data center>"])
            yield setting, f"{where}{path} has no data center. Write {keys}"
        elif not re.fullmatch(ORGANIZATION_PATH, path):
            problem = f"{where}{_printed(path)} must be <data center>/<organization ID>"
            if setting == "GATEWAY_CLIENTS":
                problem += f" or an API in APIS.{_closest(path, settings.apis)}"
            yield setting, problem
        elif is_known and path.partition("/")[0] not in centers:
            yield setting, f"{where}{path} isn't in a configured data center"
