"""Turns answers into settings: adds presets, exchanges codes, and leaves out what was refused."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bot.checks.rules import Finding
from bot.settings import Settings, SettingsError, settings_from
from bot.settings.model import SERVICES, OAuthSettings, ServiceName
from bot.settings.sources import Sources
from bot.setup.accounts import refresh_token_of
from bot.setup.names import Workspace, look_up
from bot.setup.vendors import OTHER, PRESETS
from bot.slack.manifest import manifest_link

Table = dict[str, Any]
"""Settings by the names and in the form of the settings file."""
REFUSED = "credentials_refused"


def check_settings(table: Mapping[str, object]) -> Settings:
    """Validate and return settings."""
    return settings_from(Sources({}, table=table))


def workspace_of(table: Table) -> Workspace:
    """Return the people and channels of the bot token's workspace."""
    url = table.get("slack_api_url", Settings.model_fields["slack_api_url"].default)
    return asyncio.run(look_up(str(table["slack_bot_token"]), str(url)))


def link_of(url: str | None, *, is_socket: bool) -> str:
    """Return the link that creates the app."""
    try:
        return manifest_link(url or None, socket=is_socket)
    except (ValueError, TypeError) as error:
        raise SettingsError([f"url: {error}"]) from None


def with_presets(table: Table, setup: Mapping[str, Any]) -> Table:
    """Return the settings of the vendors that `setup` names, and the settings in the table."""
    problems = [f"setup → {key} is not a known key." for key in setup.keys() - {"url", *PRESETS}]
    vendors = dict.fromkeys(PRESETS, OTHER)
    settings: Table = {}
    for service, presets in PRESETS.items():
        vendor = presets.get(setup.get(service, "other"))
        if vendor is None:
            problems.append(f"setup → {service} must be one of: {', '.join(presets)}.")
        elif any(name.lower() in table for name in SERVICES[service]):
            vendors[service] = vendor
            settings |= vendor.settings
    if problems:
        raise SettingsError(problems)
    for name, oauth in oauth_in(table).items():
        if url := vendors["inventory"].token_url_of(name):
            oauth.setdefault("token_url", url)
    return {**settings, **table}


def oauth_in(table: Table) -> dict[str, Table]:
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
    with_code = {name: oauth for name, oauth in oauth_in(table).items() if "code" in oauth}
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
            oauth["refresh_token"] = asyncio.run(refresh_token_of(name, OAuthSettings(**oauth)))
        except SettingsError as error:
            refused += error.problems
            del table["inventory_data_centers"][name]
    return refused


def leave_out(table: Table, findings: Iterable[Finding]) -> list[str]:
    """Remove the credentials that a service refused from the table, and return the reasons."""
    refused = []
    for finding in findings:
        service, _, data_center = finding.subject.partition(" ")
        if finding.code == "app_token_refused" and "slack_signing_secret" in table:
            names = ["slack_app_token"]
        elif finding.code != REFUSED:
            continue
        elif service == "inventory":
            del table["inventory_data_centers"][data_center]
            names = []
        else:
            names = [name.lower() for name in SERVICES[cast(ServiceName, service)]]
        for name in names:
            table.pop(name, None)
        refused.append(f"{finding.subject}: {finding.sentence}")
    return refused
