"""Turns answers into settings. The answers come from a file or from the terminal."""

import asyncio
import json
from collections.abc import Mapping

from yarl import URL

from bot.settings import Settings, SettingsError, read_settings
from bot.setup.accounts import refresh_token_of
from bot.setup.answers import Answers, EmailAnswer, FlowAnswer, InventoryAnswer, SetupError
from bot.setup.names import CHANNELS, Workspace, look_up
from bot.setup.vendors import DATA_CENTER, EMAIL, FLOW, INVENTORY

ROLES = {"viewer": "viewers", "operator": "operators", "approver": "approvers", "admin": "admins"}


def settings_of(
    answers: Answers,
    rest: Mapping[str, str],
    workspace: Workspace | None = None,
    tokens: dict[str, str] | None = None,
) -> dict[str, str]:
    """Return the names and values of the settings for these answers.

    Pass `workspace` and `tokens` (see `inventory_settings`) to reuse the results of earlier calls.
    """
    workspace = workspace or asyncio.run(look_up(answers.slack_bot_token, rest))
    people = {key: getattr(answers, key) for key in ROLES.values()}
    ids = workspace.ids({**{key: [getattr(answers, key)] for key in CHANNELS}, **people})
    settings = {
        "SLACK_BOT_TOKEN": answers.slack_bot_token,
        "SLACK_SIGNING_SECRET": answers.slack_signing_secret,
        "SLACK_APP_TOKEN": answers.slack_app_token,
        **{key.upper(): ids[key][0] for key in CHANNELS},
        "ROLES": json.dumps({role: ids[key] for role, key in ROLES.items() if ids[key]}),
    }
    settings |= {**flow_settings(answers.flow), **email_settings(answers.email)}
    given = {name: value for name, value in settings.items() if value}
    if answers.inventory is None:
        check_settings({**rest, **given})
        return given
    found = {} if tokens is None else tokens
    try:
        return {**given, **inventory_settings(answers.inventory, {**rest, **given}, found)}
    except SetupError as error:
        centers = answers.inventory.data_centers.items()
        used = [name for name, center in centers if center.code in found]
        if not used or tokens is not None:
            raise
        sentence = f"The code for {' and '.join(used)} has been used. Create a new one for it, too."
        raise SetupError(*error.problems, sentence) from None


def check_settings(environment: Mapping[str, str]) -> Settings:
    """Validate and return the settings in an environment."""
    try:
        return read_settings(environment)
    except SettingsError as error:
        raise SetupError(*error.problems) from None


def flow_settings(answer: FlowAnswer | None) -> dict[str, str]:
    """Return the settings of the flow service."""
    if answer is None:
        return {}
    return {
        "FLOW_BASE_URL": flow_address(answer),
        "FLOW_ACCOUNT_SID": answer.account_sid,
        "FLOW_AUTH_TOKEN": answer.auth_token,
        "FLOW_ALIASES": json.dumps(answer.aliases, ensure_ascii=False),
        **FLOW[answer.vendor].settings,
    }


def email_settings(answer: EmailAnswer | None) -> dict[str, str]:
    """Return the settings of the email service."""
    if answer is None:
        return {}
    address = answer.base_url or EMAIL[answer.vendor].base_url or ""
    return {"EMAIL_BASE_URL": address, "EMAIL_API_KEY": answer.api_key}


def flow_address(answer: FlowAnswer) -> str:
    """Return the flow service's URL."""
    return answer.base_url or FLOW[answer.vendor].base_url or ""


def inventory_settings(
    answer: InventoryAnswer, others: Mapping[str, str], tokens: dict[str, str]
) -> dict[str, str]:
    """Exchange codes for refresh tokens, and return the inventory settings.

    A code works only once, so codes are exchanged only after all settings, including `others`, are
    validated. `tokens` maps each exchanged code to its refresh token and is updated in place.
    """
    check_settings({**others, **_inventory_settings(answer, tokens)})
    for name, center in answer.data_centers.items():
        if center.code and center.code not in tokens:
            address = _token_url(answer, name)
            tokens[center.code] = asyncio.run(refresh_token_of(name, center, address))
    return _inventory_settings(answer, tokens)


def _inventory_settings(answer: InventoryAnswer, tokens: Mapping[str, str]) -> dict[str, str]:
    vendor = INVENTORY[answer.vendor]
    base_url = answer.base_url or vendor.base_url or ""
    # If the root is on a .com host, the roots of other data centers are derived from it. In any
    # other URL, only `{data_center}` is replaced.
    is_regional = (URL(base_url).host or "").endswith(".com") and DATA_CENTER not in base_url
    centers: dict[str, object] = {}
    for name, center in answer.data_centers.items():
        oauth = {
            "client_id": center.client_id,
            "client_secret": center.client_secret,
            "refresh_token": tokens.get(center.code or "", "a-code-that-is-not-exchanged-yet"),
            "token_url": _token_url(answer, name),
        }
        given = {
            "authtoken": center.authtoken,
            "oauth": None if center.authtoken else oauth,
            "base_url": None if is_regional else base_url.replace(DATA_CENTER, name),
            "organization_id": center.organization_id,
        }
        centers[name] = {key: value for key, value in given.items() if value is not None}
    return {
        **({"INVENTORY_BASE_URL": base_url} if is_regional else {}),
        "INVENTORY_DATA_CENTERS": json.dumps(centers),
        **vendor.settings,
    }


def _token_url(answer: InventoryAnswer, data_center: str) -> str:
    vendor = INVENTORY[answer.vendor]
    address = answer.token_url or vendor.token_urls.get(data_center) or vendor.token_url or ""
    return address.replace(DATA_CENTER, data_center)
