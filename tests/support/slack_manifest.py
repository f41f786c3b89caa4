"""Slack's rules for an app manifest, as a schema and as what no schema says.

docs.slack.dev/reference/app-manifest: keys, lengths; the rest from what Slack refuses.
"""

import re
from typing import Any

from jsonschema import Draft7Validator

FORBIDDEN_SCOPES = re.compile(r"^(admin|identity|search)[.:]|:history$")
NO_SCOPE = frozenset(
    {
        *("auth_test", "apps_connections_open", "chat_getPermalink"),
        *("views_open", "views_update", "views_publish"),
    }
)
# The Web API's methods by the bot scopes that they want.
SCOPES_OF = {
    "chat_postMessage": {"chat:write"},
    "chat_update": {"chat:write"},
    "users_info": {"users:read"},
    "usergroups_list": {"usergroups:read"},
    "usergroups_users_list": {"usergroups:read"},
    "conversations_info": {"channels:read", "groups:read"},
    "conversations_open": {"im:write"},
}
SCOPES_OF_EVENT = {"app_home_opened": set(), "message.im": {"im:history"}}


def _text(longest: int, shortest: int = 1, pattern: str = "") -> dict[str, Any]:
    rule: dict[str, Any] = {"type": "string", "minLength": shortest, "maxLength": longest}
    return {**rule, "pattern": pattern} if pattern else rule


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


FLAG = {"type": "boolean"}
HTTPS = _text(3000, pattern=r"^https://[^/]+/")
SCHEMA = _object(
    "display_information",
    _metadata=_object("", major_version={"enum": [1, 2]}, minor_version={"type": "integer"}),
    display_information=_object(
        "name",
        name=_text(35),
        description=_text(140),
        long_description=_text(4000, 175),
        background_color=_text(7, pattern=r"^#([0-9a-fA-F]{3}){1,2}$"),
    ),
    features=_object(
        "",
        app_home=_object(
            "",
            home_tab_enabled=FLAG,
            messages_tab_enabled=FLAG,
            messages_tab_read_only_enabled=FLAG,
        ),
        bot_user=_object(
            "display_name",
            display_name=_text(80, pattern=r"^[a-z0-9._-]+$"),
            always_online=FLAG,
        ),
        shortcuts={
            "type": "array",
            "maxItems": 10,
            "items": _object(
                "name type callback_id description",
                name=_text(24),
                type={"enum": ["global", "message"]},
                callback_id=_text(255),
                description=_text(150),
            ),
        },
        slash_commands={
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": _object(
                "command description",
                command=_text(32, pattern=r"^/[a-z0-9_-]+$"),
                description=_text(2000),
                usage_hint=_text(1000),
                should_escape=FLAG,
                url=HTTPS,
            ),
        },
    ),
    oauth_config=_object(
        "",
        scopes=_object(
            "",
            bot={
                "type": "array",
                "maxItems": 255,
                "uniqueItems": True,
                "items": _text(60, pattern=r"^[a-z]+([:.][a-z.]+)*$"),
            },
        ),
    ),
    settings=_object(
        "",
        event_subscriptions=_object(
            "",
            request_url=HTTPS,
            bot_events={"type": "array", "maxItems": 100, "items": _text(60)},
        ),
        interactivity=_object(
            "is_enabled",
            is_enabled=FLAG,
            request_url=HTTPS,
            message_menu_options_url=HTTPS,
        ),
        org_deploy_enabled=FLAG,
        socket_mode_enabled=FLAG,
        token_rotation_enabled=FLAG,
    ),
)


def problems(manifest: dict[str, Any]) -> list[str]:
    """What Slack would refuse, or the review would ask about."""
    broken = [error.message for error in Draft7Validator(SCHEMA).iter_errors(manifest)]
    return broken or [*_address_problems(manifest), *_scope_problems(manifest)]


def _address_problems(manifest: dict[str, Any]) -> list[str]:
    settings = manifest["settings"]
    commands = manifest["features"]["slash_commands"]
    places = [*commands, settings["interactivity"]]
    if settings.get("event_subscriptions"):
        places.append(settings["event_subscriptions"])
    has = [bool(one.get("url") or one.get("request_url")) for one in places]
    if settings["socket_mode_enabled"]:
        return ["an address where Socket Mode needs none"] * any(has)
    return ["an address is missing"] * (not all(has))


def _scope_problems(manifest: dict[str, Any]) -> list[str]:
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    events = manifest["settings"].get("event_subscriptions", {}).get("bot_events", [])
    needed = {"commands"}.union(*(SCOPES_OF_EVENT[event] for event in events))
    return [
        *(f"{scope} is missing" for scope in sorted(needed - scopes)),
        *(
            f"{scope} is more than needed"
            for scope in scopes - needed
            if FORBIDDEN_SCOPES.search(scope)
        ),
    ]
