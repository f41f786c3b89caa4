"""What Slack must know of the bot: the app manifest, made from the same lists that are checked.

Slack's rules for it: docs.slack.dev/reference/app-manifest.
"""

from dataclasses import dataclass
from typing import Any

import yaml
from yarl import URL

EVENTS_PATH = "/slack/events"
PLACEHOLDER_URL = "https://bot.example.com"


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command, as Slack's list of commands shows it."""

    name: str
    description: str
    usage_hint: str


COMMANDS = (
    Command(
        "/orgs", "Organizations of the inventory service", "[<text> | show <org> | refresh | help]"
    ),
    Command(
        "/ratelimits",
        "How much of each organization's limits is used",
        "[<org> | check <org> | plan <org> <plan> | help]",
    ),
    Command(
        "/testusers",
        "Who may test a flow's drafts: list, ask for a change, approve",
        "[list <flow> | add <flow> <identity>… | remove … | history … | requests | help]",
    ),
    Command(
        "/emailkey",
        "Does the email service's key work, and which templates are there",
        "[check [resource] | templates | help]",
    ),
    Command(
        "/gatehouse", "Help, who you are here, how the bot is", "[help | whoami | status | audit]"
    ),
)

# The least that the bot can do with: each scope, and what it is for.
SCOPES = {
    "commands": "the slash commands",
    "chat:write": "alerts, approval cards and direct messages about one's own requests",
    "users:read": "who somebody is: of this workspace, and not a guest",
    "usergroups:read": "the members of the groups in ROLES and FLOW_APPROVERS",
    "channels:read": "`check`: is the alerts channel there, and is the bot in it",
    "groups:read": "the same for a private approvals channel",
}


def app_manifest(url: str | None, *, socket: bool) -> dict[str, Any]:
    """The manifest for a bot at `url` (not needed with Socket Mode).

    Raises ValueError, with a sentence, where Slack could not call the address.
    """
    endpoint = None if socket else _endpoint(url)
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": "Gatehouse",
            "description": "Asks, approves, applies: test users, quotas and keys of three services",
            "background_color": "#1d3557",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                # Commands can be typed in the bot's own messages tab only if it is writable.
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "gatehouse", "always_online": True},
            "slash_commands": [_command(one, endpoint) for one in COMMANDS],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "interactivity": _interactivity(endpoint),
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket,
            "token_rotation_enabled": False,
        },
    }


def manifest_text(url: str | None, *, socket: bool) -> str:
    """The manifest as YAML, which Slack takes as it is. Raises as `app_manifest`."""
    return yaml.safe_dump(app_manifest(url, socket=socket), sort_keys=False, allow_unicode=True)


def _endpoint(url: str | None) -> str:
    address = _parsed(url or "")
    if address is None or address.scheme != "https":
        example = f"python -m bot manifest --url {PLACEHOLDER_URL}"
        raise ValueError(f"Slack calls https:// addresses only. For example: {example}")
    return str(address).rstrip("/") + EVENTS_PATH


def _parsed(url: str) -> URL | None:
    try:
        address = URL(url)
    except ValueError:
        return None
    is_plain = not (address.user or address.query_string or address.fragment)
    return address if address.host and is_plain else None


def _command(command: Command, endpoint: str | None) -> dict[str, Any]:
    return {
        "command": command.name,
        **({"url": endpoint} if endpoint else {}),
        "description": command.description,
        "usage_hint": command.usage_hint,
        # Mentions arrive as ids, which cannot be imitated as names can.
        "should_escape": True,
    }


def _interactivity(endpoint: str | None) -> dict[str, Any]:
    if endpoint is None:
        return {"is_enabled": True}
    return {"is_enabled": True, "request_url": endpoint, "message_menu_options_url": endpoint}
