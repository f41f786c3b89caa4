"""The app manifest, built from the same lists that startup and `gatehouse check` use.

For Slack's rules, see docs.slack.dev/reference/app-manifest.
"""

import json
from typing import Any
from urllib.parse import quote

from yarl import URL

from bot.commands import COMMANDS
from bot.slack.messages import ids

EVENTS_PATH = "/slack/events"
PLACEHOLDER_URL = "https://bot.example.com"
CREATE_APP_URL = "https://api.slack.com/apps?new_app=1&manifest_json="


# The required scopes, each with its purpose.
SCOPES = {
    "commands": "receiving slash commands",
    "chat:write": "posting alerts, approval cards and direct messages",
    "users:read": "checking that a person is a full member of this workspace",
    "usergroups:read": "listing the members of the user groups that the settings name",
    "channels:read": "checking that a public channel exists and that the bot is in it",
    "groups:read": "checking that a private channel exists and that the bot is in it",
    "im:history": "answering direct messages to the bot",
}
EVENTS = ("app_home_opened", "message.im")


SHORTCUTS = [
    {
        "name": "Change test users",
        "type": "global",
        "callback_id": ids.CHANGE_TEST_USERS,
        "description": "Ask to add or remove a flow's test users",
    },
]


def app_manifest(url: str | None, *, socket: bool) -> dict[str, Any]:
    """Return the manifest for a bot at `url`. With Socket Mode, no URL is needed.

    Raises:
        ValueError: The bot needs a URL, and Slack can't call `url`.
    """
    endpoint = ""
    if not socket:
        try:
            address = URL((url or "").strip())
        except ValueError:
            address = URL()
        is_odd = address.user or address.query_string or address.fragment or not address.host
        if address.scheme != "https" or is_odd:
            example = f"gatehouse manifest --url {PLACEHOLDER_URL}"
            raise ValueError(f"Slack calls only https:// addresses. For example: {example}")
        endpoint = str(address).rstrip("/").removesuffix(EVENTS_PATH) + EVENTS_PATH
    addressed = {"request_url": endpoint} if endpoint else {}
    options = {"message_menu_options_url": endpoint} if endpoint else {}
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": "Gatehouse",
            "description": (
                "Request and approve test users, watch API limits and check keys, all from Slack"
            ),
            "background_color": "#1d3557",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                # People can type in the app's Messages tab only if the tab isn't read-only.
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "gatehouse", "always_online": True},
            "shortcuts": SHORTCUTS,
            "slash_commands": [
                {
                    "command": command.name,
                    **({"url": endpoint} if endpoint else {}),
                    "description": command.description,
                    "usage_hint": command.usage_hint,
                    # Ask Slack to send mentions as IDs, because names can be faked.
                    "should_escape": True,
                }
                for command in COMMANDS
            ],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**addressed, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **addressed, **options},
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket,
            "token_rotation_enabled": False,
        },
    }


def manifest_text(url: str | None, *, socket: bool) -> str:
    """Return the manifest as JSON (also valid YAML). Raise ValueError if Slack can't call `url`."""
    return json.dumps(app_manifest(url, socket=socket), indent=2, ensure_ascii=False) + "\n"


def manifest_link(url: str | None, *, socket: bool) -> str:
    """Return the address at Slack that creates the app from the manifest.

    Raises:
        ValueError: Slack can't call `url`.
    """
    manifest = json.dumps(app_manifest(url, socket=socket), separators=(",", ":"))
    return CREATE_APP_URL + quote(manifest, safe="")


def missing_scopes(granted: frozenset[str]) -> str:
    """Return a sentence that lists the scopes missing from a token.

    Return an empty string if no scopes are missing, or if the token's scopes are unknown.
    """
    missing = [scope for scope in SCOPES if granted and scope not in granted]
    if not missing:
        return ""
    reasons = "; ".join(f"{scope} ({SCOPES[scope]})" for scope in missing)
    return f"The token lacks {reasons}. Update the app from manifest.yml and reinstall it."
