"""Turns answers into settings: adds presets, exchanges codes, and leaves out what was refused."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from bot.check import checking
from bot.checks.checks import Check, Listed
from bot.checks.rules import Finding
from bot.configured import flow_client
from bot.ops.clock import SystemClock
from bot.ops.loop import run
from bot.ops.redaction import Redactor
from bot.services.calls import REFUSED
from bot.services.credentials import token_call, tokens_in
from bot.services.errors import CredentialsRefused, ServiceError, ServiceRefused
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings, SettingsError, settings_from
from bot.settings.files import Sources
from bot.settings.model import SERVICES, OAuthSettings, ServiceName, safe_address, secrets_in
from bot.setup.names import Workspace, look_up
from bot.setup.vendors import PRESETS
from bot.slack.manifest import manifest_link

Table = dict[str, Any]
"""Settings by the names and in the form of the settings file."""


def check_settings(table: Mapping[str, object]) -> Settings:
    """Validate and return settings."""
    return settings_from(Sources({}, table=table))


async def tried(settings: Settings, check: Check) -> tuple[Sequence[Finding], Listed]:
    """Return the findings of a check, and what it listed. It creates no database file."""
    async with checking(settings) as parts:
        return await check(parts), parts.listed


def workspace_of(table: Table) -> Workspace:
    """Return the people and channels of the bot token's workspace."""
    url = str(table.get("slack_api_url", Settings.model_fields["slack_api_url"].default))
    try:
        safe_address(url)
    except ValueError as error:
        raise SettingsError([f"SLACK_API_URL {error}."]) from None
    return run(look_up(str(table["slack_bot_token"]), url))


def link_of(url: object, *, is_socket: bool) -> str:
    """Return the link that creates the app."""
    try:
        return manifest_link(str(url or ""), socket=is_socket)
    except ValueError as error:
        raise SettingsError([f"url: {error}"]) from None


def with_presets(table: Table, setup: Mapping[str, Any]) -> Table:
    """Return the settings of the vendors that `setup` names, and the settings in the table."""
    problems = [f"setup → {key} is not a known key." for key in setup.keys() - {"url", *PRESETS}]
    settings: Table = {}
    for service, presets in PRESETS.items():
        vendor = presets.get(str(setup.get(service, "other")))
        if vendor is None:
            problems.append(f"setup → {service} must be one of: {', '.join(presets)}.")
        elif any(name.lower() in table for name in SERVICES[service]):
            settings |= vendor.settings
            if vendor.token_url:
                for name, oauth in _oauth_in(table).items():
                    oauth.setdefault("token_url", vendor.token_url_of(name))
    if problems:
        raise SettingsError(problems)
    return {**settings, **table}


def _oauth_in(table: Table) -> dict[str, Table]:
    """Return the OAuth table of each data center that has one."""
    centers = table.get("inventory_data_centers")
    rows = centers.items() if isinstance(centers, dict) else ()
    return {
        name: center["oauth"]
        for name, center in rows
        if isinstance(center, dict) and isinstance(center.get("oauth"), dict)
    }


def exchange_codes(table: Table) -> list[str]:
    """Replace each code in the table by a refresh token, after all settings are validated.

    A code works only once. Return the problems with refused codes. Their data centers are left out.
    """
    with_code = {name: oauth for name, oauth in _oauth_in(table).items() if "code" in oauth}
    for name, oauth in with_code.items():
        # Until it's exchanged, the code stands for the refresh token.
        code = oauth.pop("code")
        if oauth.setdefault("refresh_token", code) != code:
            problem = "needs either code or refresh_token, but not both"
            raise SettingsError([f"inventory_data_centers → {name} → oauth: {problem}"])
    check_settings(table)
    refused: list[str] = []
    for name, oauth in with_code.items():
        try:
            oauth["refresh_token"] = run(_refresh_token(name, OAuthSettings(**oauth)))
        except SettingsError as error:
            refused += [*error.problems, *_leave_out_center(table, name)]
    return refused


def _leave_out_center(table: Table, center: str) -> list[str]:
    """Remove a data center, and what names its organizations. Return the reasons for the latter."""
    del table["inventory_data_centers"][center]
    reasons = []
    for setting in ("inventory_plans", "inventory_reserve", "gateway_clients"):
        for key, row in [*table.get(setting, {}).items()]:
            paths = [key, *(row.get("organizations", ()) if isinstance(row, dict) else ())]
            if any(path.startswith(f"{center}/") for path in paths):
                del table[setting][key]
                reasons.append(f"{setting} → {key}: it needs the data center {center}.")
    return reasons


async def _refresh_token(data_center: str, oauth: OAuthSettings) -> str:
    """Exchange a single-use code, which stands for the refresh token, for the refresh token."""
    call = token_call(data_center, oauth, "authorization_code", "code")
    redactor = Redactor(secrets_in(oauth))
    problem = (
        "no refresh token was returned for the code, so access would end within an hour. Create"
        " the code in a self client, or request offline access for it."
    )
    try:
        async with open_session() as session:
            http = ServiceHttp(session, redactor, lambda _: None, SystemClock())
            tokens = await http.request(call, partial(tokens_in, call, redactor))
        if tokens.refresh_token:
            return tokens.refresh_token
    except (ServiceRefused, CredentialsRefused) as error:
        reason = error.message.partition(": ")[0][:80] or "no reason was given"
        refused = "client_id or client_secret" if "client" in reason else "code"
        problem = (
            f"{refused} was rejected ({reason}). The client ID, client secret and code must come"
            " from this data center's self client. A code works only once, and expires after three"
            " minutes unless you chose a longer time."
        )
    except ServiceError as error:
        problem = f"{error.sentence} Check token_url and the data center."
        raise SettingsError([problem]) from None
    raise SettingsError([f"{data_center}: {problem}"])


async def flows_of(settings: Settings) -> dict[str, str]:
    """Return flow names keyed by SID, or {} if the account can't list its flows."""
    async with checking(settings) as parts:
        client = flow_client(settings, parts.http)
        try:
            return await client.names() if client else {}
        except ServiceError:
            return {}


def leave_out(table: Table, findings: Iterable[Finding]) -> list[str]:
    """Remove the credentials that a service refused from the table, and return the reasons."""
    refused = []
    for finding in findings:
        service, _, data_center = finding.subject.partition(" ")
        if finding.code == "app_token_refused" and "slack_signing_secret" in table:
            del table["slack_app_token"]
        elif finding.code != REFUSED:
            continue
        elif service == "inventory":
            refused += _leave_out_center(table, data_center)
        else:
            for name in SERVICES[cast(ServiceName, service)]:
                table.pop(name.lower(), None)
        refused.append(f"{finding.subject}: {finding.sentence}")
    return refused
