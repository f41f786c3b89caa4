"""Builds settings from answers without I/O; names and codes are already IDs and tokens."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

from yarl import URL

from bot.setup.accounts import Listed
from bot.setup.answers import Answers, FlowAnswer, InventoryAnswer
from bot.setup.names import Workspace, together
from bot.setup.vendors import DATA_CENTER, EMAIL, FLOW, INVENTORY

ROLES = {"viewer": "viewers", "operator": "operators", "approver": "approvers", "admin": "admins"}
CHANNELS = ("alerts_channel", "approvals_channel")
LONGEST_ALIAS = 50


def slack_settings(answers: Answers, workspace: Workspace) -> dict[str, str]:
    """Return the settings for Slack and the roles.

    Raises:
        SetupError: Some names don't exist in Slack; the error lists all of them.
    """
    steps: list[tuple[str, Callable[[], object]]] = [
        *((f"{key}: ", partial(workspace.ids_of, getattr(answers, key))) for key in ROLES.values()),
        *((f"{key}: ", partial(workspace.channel_id, getattr(answers, key))) for key in CHANNELS),
    ]
    *ids, alerts, approvals = together(steps)
    tokens = {
        "SLACK_BOT_TOKEN": answers.slack_bot_token,
        "SLACK_SIGNING_SECRET": answers.slack_signing_secret,
        "SLACK_APP_TOKEN": answers.slack_app_token,
    }
    roles = {role: named for role, named in zip(ROLES, ids, strict=True) if named}
    return {
        **{name: token for name, token in tokens.items() if token},
        "ALERTS_CHANNEL": str(alerts),
        "APPROVALS_CHANNEL": str(approvals),
        "ROLES": json.dumps(roles),
    }


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
            "token_url": token_url_of(answer, name),
        }
        credential = {"authtoken": center.authtoken} if center.authtoken else {"oauth": oauth}
        centers[name] = {**credential, **address}
    return {
        **({"INVENTORY_BASE_URL": base_url} if is_regional else {}),
        "INVENTORY_DATA_CENTERS": json.dumps(centers),
        **vendor.settings,
    }


def token_url_of(answer: InventoryAnswer, data_center: str) -> str:
    """Return the URL that issues a data center's tokens."""
    vendor = INVENTORY[answer.vendor]
    address = answer.token_url or vendor.token_urls.get(data_center) or vendor.token_url or ""
    return address.replace(DATA_CENTER, data_center)


def with_organizations(
    settings: Mapping[str, str], listed: Mapping[str, Listed], chosen: Mapping[str, str]
) -> dict[str, str]:
    """Add the plans that the services reported and the chosen organizations.

    Args:
        settings: The result of `inventory_settings`.
        listed: The organizations by data center.
        chosen: The ID of the organization to name in listings, by data center.
    """
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


def service_settings(answers: Answers) -> dict[str, str]:
    """Return the flow and email service settings."""
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
