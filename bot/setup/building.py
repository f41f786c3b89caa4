"""Turns answers into settings. The answers come from a file or from the terminal."""

import asyncio
from collections.abc import Mapping
from typing import Any

from yarl import URL

from bot.settings import Settings, SettingsError, settings_from
from bot.settings.sources import Sources
from bot.setup.accounts import refresh_token_of
from bot.setup.answers import Answers, EmailAnswer, FlowAnswer, InventoryAnswer, SetupError
from bot.setup.names import CHANNELS, Workspace
from bot.setup.vendors import DATA_CENTER, EMAIL, FLOW, INVENTORY

ROLES = {"viewer": "viewers", "operator": "operators", "approver": "approvers", "admin": "admins"}

Table = dict[str, Any]
"""Settings by the names and in the form of the settings file."""


def settings_of(answers: Answers, rest: Table, workspace: Workspace) -> Table:
    """Return the settings for these answers. `rest` has settings that setup doesn't ask for."""
    channels = {key: [getattr(answers, key)] for key in CHANNELS}
    people = {key: getattr(answers, key) for key in ROLES.values()}
    ids = workspace.ids({**channels, **people})
    settings = {
        "slack_bot_token": answers.slack_bot_token,
        "slack_signing_secret": answers.slack_signing_secret,
        "slack_app_token": answers.slack_app_token,
        **{key: ids[key][0] for key in CHANNELS},
        "roles": {role: ids[key] for role, key in ROLES.items() if ids[key]},
    }
    given = {**rest, **{name: value for name, value in settings.items() if value}}
    if answers.flow is not None:
        given |= flow_settings(answers.flow)
    if answers.email is not None:
        given |= email_settings(answers.email)
    if answers.inventory is not None:
        given |= inventory_settings(answers.inventory, given)
    check_settings(given)
    return given


def check_settings(given: Mapping[str, object]) -> Settings:
    """Validate and return settings."""
    try:
        return settings_from(Sources({}, table=given))
    except SettingsError as error:
        raise SetupError(*error.problems) from None


def flow_settings(answer: FlowAnswer) -> Table:
    """Return the settings of the flow service."""
    return {
        "flow_base_url": flow_address(answer),
        "flow_account_sid": answer.account_sid,
        "flow_auth_token": answer.auth_token,
        "flow_aliases": answer.aliases,
        **FLOW[answer.vendor].settings,
    }


def flow_address(answer: FlowAnswer) -> str:
    """Return the flow service's URL."""
    return answer.base_url or FLOW[answer.vendor].base_url


def email_settings(answer: EmailAnswer) -> Table:
    """Return the settings of the email service."""
    address = answer.base_url or EMAIL[answer.vendor].base_url
    return {"email_base_url": address, "email_api_key": answer.api_key}


def inventory_settings(answer: InventoryAnswer, others: Table) -> Table:
    """Exchange codes for refresh tokens, and return the inventory settings.

    A code works only once, so codes are exchanged only after all settings, including `others`, are
    validated.
    """
    settings = _inventory_settings(answer)
    check_settings({**others, **settings})
    problems: list[str] = []
    for name, center in answer.data_centers.items():
        if center.code:
            oauth = settings["inventory_data_centers"][name]["oauth"]
            exchange = refresh_token_of(name, center, oauth["token_url"])
            try:
                oauth["refresh_token"] = asyncio.run(exchange)
            except SetupError as error:
                raise SetupError(*error.problems, *problems) from None
            problems.append(f"The code for {name} has already been used. Create a new one.")
    return settings


def _inventory_settings(answer: InventoryAnswer) -> Table:
    """Return the inventory settings, with codes in place of refresh tokens."""
    vendor = INVENTORY[answer.vendor]
    base_url = answer.base_url or vendor.base_url
    # If the root is on a .com host, the roots of other data centers are derived from it. In any
    # other URL, only `{data_center}` is replaced.
    is_regional = (URL(base_url).host or "").endswith(".com") and DATA_CENTER not in base_url
    centers: Table = {}
    for name, center in answer.data_centers.items():
        credential: Table = {"authtoken": center.authtoken}
        if center.code:
            token_url = answer.token_url or vendor.token_urls.get(name, vendor.token_url)
            oauth = {
                "client_id": center.client_id,
                "client_secret": center.client_secret,
                "refresh_token": center.code,
                "token_url": token_url.replace(DATA_CENTER, name),
            }
            credential = {"oauth": oauth}
        if not is_regional:
            credential["base_url"] = base_url.replace(DATA_CENTER, name)
        centers[name] = credential
    root = {"inventory_base_url": base_url} if is_regional else {}
    return {**root, "inventory_data_centers": centers, **vendor.settings}
