"""Turns answers into settings, for answers from a file and from the terminal."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

from bot.settings import Settings, SettingsError, read_settings
from bot.setup.accounts import Listed, listings, refresh_token_of
from bot.setup.answers import Answers, FlowAnswer, InventoryAnswer, SetupError
from bot.setup.names import CHANNEL_ID, EVERYBODY, PERSON_ID, Workspace, refuse, workspace_names
from bot.setup.vendors import DATA_CENTER, EMAIL, FLOW, INVENTORY

ROLES = {"viewer": "viewers", "operator": "operators", "approver": "approvers", "admin": "admins"}
CHANNELS = ("alerts_channel", "approvals_channel")
LONGEST_ALIAS = 50
SLACK_API_URL = "https://slack.com/api/"


@dataclass
class Known:
    """The results of earlier steps, which are kept to avoid running a step twice.

    `tokens` has the refresh tokens by code. `listed` has each data center's organizations (None
    before listing), and `chosen` the organization to name in each data center's listings.
    """

    workspace: Workspace | None = None
    tokens: dict[str, str] = field(default_factory=dict)
    listed: dict[str, Listed] | None = None
    chosen: dict[str, str] = field(default_factory=dict)


def settings_of(answers: Answers, rest: Mapping[str, str], known: Known) -> dict[str, str]:
    """Return the settings for the answers, by name.

    Codes work only once, so they are exchanged only after all other answers are valid.
    """
    settings = _slack_settings(answers, known.workspace or _workspace(answers, rest))
    settings |= _service_settings(answers)
    inventory = answers.inventory
    if inventory is None:
        check_settings({**rest, **settings})
        return settings
    check_settings({**rest, **settings, **inventory_settings(inventory, known.tokens)})
    exchange(inventory, known)
    settings |= inventory_settings(inventory, known.tokens)
    if known.listed is None:
        known.listed = asyncio.run(listings(check_settings({**rest, **settings})))
    return _with_organizations(settings, known.listed, known.chosen)


def exchange(inventory: InventoryAnswer, known: Known) -> None:
    """Exchange the codes that have no refresh token yet."""
    for name, center in inventory.data_centers.items():
        if center.code and center.code not in known.tokens:
            address = _token_url(inventory, name)
            known.tokens[center.code] = asyncio.run(refresh_token_of(name, center, address))


def check_settings(environment: Mapping[str, str]) -> Settings:
    """Validate the settings in an environment."""
    try:
        return read_settings(environment)
    except SettingsError as error:
        raise SetupError(*error.problems) from None


def _workspace(answers: Answers, rest: Mapping[str, str]) -> Workspace:
    """Look up names in Slack, but skip the lookup, which needs scopes, if all answers are IDs."""
    people = [name for key in ROLES.values() for name in getattr(answers, key)]
    channels = (answers.alerts_channel, answers.approvals_channel)
    if all(name == EVERYBODY or PERSON_ID.fullmatch(name) for name in people) and all(
        map(CHANNEL_ID.fullmatch, channels)
    ):
        return Workspace()
    api_url = rest.get("SLACK_API_URL") or SLACK_API_URL
    return asyncio.run(workspace_names(answers.slack_bot_token, api_url))


def _slack_settings(answers: Answers, workspace: Workspace) -> dict[str, str]:
    problems: list[str] = []
    roles = {
        role: workspace.ids_of(getattr(answers, key), problems, f"{key}: ")
        for role, key in ROLES.items()
    }
    found = {
        "SLACK_BOT_TOKEN": answers.slack_bot_token,
        "SLACK_SIGNING_SECRET": answers.slack_signing_secret,
        "SLACK_APP_TOKEN": answers.slack_app_token,
        **{
            key.upper(): workspace.channel_id(getattr(answers, key), problems, f"{key}: ")
            for key in CHANNELS
        },
        "ROLES": json.dumps({role: named for role, named in roles.items() if named}),
    }
    refuse(problems)
    return {name: value for name, value in found.items() if value}


def inventory_settings(answer: InventoryAnswer, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the inventory settings; `tokens` has the refresh tokens by code."""
    vendor = INVENTORY[answer.vendor]
    base_url = answer.base_url or vendor.base_url or ""
    # Other data centers' roots are derived from the root on the .com host; any other URL is used
    # unchanged.
    is_regional = (URL(base_url).host or "").endswith(".com") and DATA_CENTER not in base_url
    centers: dict[str, object] = {}
    for name, center in answer.data_centers.items():
        address = {} if is_regional else {"base_url": base_url.replace(DATA_CENTER, name)}
        oauth = {
            "client_id": center.client_id,
            "client_secret": center.client_secret,
            "refresh_token": tokens.get(center.code or "", "a-code-that-is-not-exchanged-yet"),
            "token_url": _token_url(answer, name),
        }
        credential = {"authtoken": center.authtoken} if center.authtoken else {"oauth": oauth}
        centers[name] = {**credential, **address}
    return {
        **({"INVENTORY_BASE_URL": base_url} if is_regional else {}),
        "INVENTORY_DATA_CENTERS": json.dumps(centers),
        **vendor.settings,
    }


def _token_url(answer: InventoryAnswer, data_center: str) -> str:
    vendor = INVENTORY[answer.vendor]
    address = answer.token_url or vendor.token_urls.get(data_center) or vendor.token_url or ""
    return address.replace(DATA_CENTER, data_center)


def _with_organizations(
    settings: Mapping[str, str], listed: Mapping[str, Listed], chosen: Mapping[str, str]
) -> dict[str, str]:
    """Add the plans that the services reported and the chosen organizations."""
    plans = {
        found.default.organization_id: found.plan.value
        for found in listed.values()
        if found.default is not None and found.plan is not None
    }
    centers = json.loads(settings["INVENTORY_DATA_CENTERS"])
    for name, organization_id in chosen.items():
        centers[name]["organization_id"] = organization_id
    return {
        **settings,
        "INVENTORY_DATA_CENTERS": json.dumps(centers),
        **({"INVENTORY_PLANS": json.dumps(plans)} if plans else {}),
    }


def _service_settings(answers: Answers) -> dict[str, str]:
    found: dict[str, str] = {}
    if answers.flow is not None:
        found |= {
            "FLOW_BASE_URL": flow_address(answers.flow),
            "FLOW_ACCOUNT_SID": answers.flow.account_sid,
            "FLOW_AUTH_TOKEN": answers.flow.auth_token,
            "FLOW_ALIASES": json.dumps(answers.flow.aliases, ensure_ascii=False),
            **FLOW[answers.flow.vendor].settings,
        }
    if answers.email is not None:
        vendor = EMAIL[answers.email.vendor]
        found |= {
            "EMAIL_BASE_URL": answers.email.base_url or vendor.base_url or "",
            "EMAIL_API_KEY": answers.email.api_key,
            **vendor.settings,
        }
    return found


def flow_address(answer: FlowAnswer) -> str:
    """Return the flow service's URL."""
    return answer.base_url or FLOW[answer.vendor].base_url or ""


def alias_of(name: str, taken: Mapping[str, str]) -> str:
    """Return a short, unique name for a flow.

    >>> alias_of("Welcome call (EU)", {})
    'welcome-call-eu'
    >>> alias_of("welcome", {"welcome": "FW…"})
    'welcome-2'
    """
    base = re.sub(r"\W+", "-", name.casefold()).strip("-")[: LONGEST_ALIAS - 4] or "flow"
    numbered = (f"{base}-{number}" for number in range(2, 1000))
    return next(alias for alias in (base, *numbered) if alias not in taken)
