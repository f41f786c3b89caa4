"""Reads the settings. Errors name each invalid setting and show an example, but never the value."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yarl import URL

from bot.approvals.rules import EVERY_FLOW
from bot.ids import FLOW_SID
from bot.ops.secrets import secret_problems
from bot.settings.files import EXAMPLES, in_environment, in_toml
from bot.settings.model import KEYS, PROXIES, Settings
from bot.settings.sources import SettingsError, Sources
from bot.spelling import closest

__all__ = ["EXAMPLES", "Settings", "SettingsError"]

# Stand-ins for missing or invalid required settings, used to check the other settings.
PLACEHOLDERS = {"slack_bot_token": "xoxb-", "alerts_channel": "C0", "approvals_channel": "C0"}


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
    "extra_forbidden": "is not a known key",
    "unexpected_keyword_argument": "is not a known key",
}

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
    known = {name: value for name, value in sources.table.items() if name in Settings.model_fields}
    given = {**known, **_in_environment(sources.environment)}
    details: list[ErrorDetails] = []
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        details = error.errors(include_input=False)
    wrong = {str(detail["loc"][0]) for detail in details}
    if wrong:
        right = {name: value for name, value in given.items() if name not in wrong}
        settings = Settings.model_validate({**PLACEHOLDERS, **right})
    between = [
        *_problems_between(settings, sources.environment, wrong),
        *secret_problems(given, settings.slack_api_url),
    ]
    problems = [
        *(
            f"{name} in {sources.file} is not a setting."
            + "".join(
                f" Did you mean {near}? (example: {in_toml(near)})"
                for near in closest(name, Settings.model_fields)
            )
            for name in sources.table.keys() - known.keys()
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
    problem = phrase_of(error)
    if problem == WORDS["extra_forbidden"]:
        problem += f".{_closest(parts[-1], KEYS)}"
    where = f"{' → '.join(parts)}: " if parts else ""
    return _line(sources, name, f"{where}{problem}")


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
        yield from _flows("FLOW_APPROVERS", settings.flow_approvers, settings)
        yield from _flows("FLOW_POLICIES", settings.flow_policies, settings)
    yield from _policies(settings)
    yield from _roots(settings)
    yield from _clients(settings)


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


def _line(sources: Sources, name: str, problem: str) -> str:
    """Return an error line with the setting's name and place, the problem, and an example."""
    if name in sources.table and name not in _in_environment(sources.environment):
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


def _flows(setting: str, names: Iterable[str], settings: Settings) -> Problems:
    known = set()
    for name in names:
        sid = settings.flow_aliases.get(name, name)
        if name != EVERY_FLOW and not re.fullmatch(FLOW_SID, sid):
            yield setting, f"refers to “{sid}”, which is neither an alias nor a flow SID"
        # SIDs are case-insensitive.
        if sid.upper() in known:
            yield setting, f"lists the flow {sid} twice, under different names"
        known.add(sid.upper())


def _policies(settings: Settings) -> Problems:
    for name in settings.flow_policies:
        rules = settings.policy.of_flow(settings.sid_of(name))
        if (rules.escalate_after_seconds is None) != (rules.escalate_to is None):
            yield "FLOW_POLICIES", f"{name}: needs both escalate_after and escalate_to"
        if rules.auto_remove and rules.auto is None:
            yield "FLOW_POLICIES", f"{name}: auto_remove needs auto"
        approvers = rules.approvers or ()
        # A group can have any number of members.
        has_group = any(approver.startswith("S") for approver in approvers)
        if approvers and not has_group and len(set(approvers)) < rules.approvals_needed:
            yield "FLOW_POLICIES", f"{name}: needs more approvals than it has approvers"


def _clients(settings: Settings) -> Problems:
    centers = settings.inventory_data_centers
    for name, client in settings.gateway_clients.items():
        for path in client.organizations:
            if centers and path.partition("/")[0] not in {*centers, "*"}:
                yield "GATEWAY_CLIENTS", f"{name}: {path} isn't in a configured data center"
