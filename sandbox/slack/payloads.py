"""Builds payloads like those that Slack sends to an app.

The fields match Slack's reference pages for slash commands, `block_actions`, `view_submission`,
`block_suggestion`, `shortcut`, `message_action` and the Events API.
"""

import re
from dataclasses import dataclass
from typing import Any

from sandbox.people import TEAM_ID, Person
from sandbox.slack.filling import state_values, view_state
from sandbox.slack.messages import Json, Message, View
from sandbox.slack.workspace import Workspace

VERIFICATION_TOKEN = "never-use-this"
MENTION = re.compile(r"(?<!\S)([@#])([\w-]+(?:\.[\w-]+)*)")
ADDRESS = re.compile(r"(?<!\S)(https?://[^\s|]+)")
MAIL = re.compile(r"(?<![\w.:+-])([\w.+-]+@[\w-]+(?:\.[\w-]+)+)")


def escaped(workspace: Workspace, text: str) -> str:
    """Escape the text that a person typed, as Slack does if `should_escape` is set.

    The characters `& < >` become HTML entities, mentions become IDs, and URLs and email addresses
    become links.
    """
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    linked = MAIL.sub(r"<mailto:\1|\1>", ADDRESS.sub(r"<\1>", safe))
    return MENTION.sub(lambda found: _mention(workspace, found), linked)


def _mention(workspace: Workspace, found: re.Match[str]) -> str:
    sign, name = found.groups()
    if sign == "#":
        named = (c for c in workspace.channels.values() if c.name == name and not c.is_direct)
        channel = next(named, None)
        return f"<#{channel.id}|{channel.name}>" if channel else found.group()
    person = next((p for p in workspace.people.values() if p.handle == name), None)
    if person:
        return f"<@{person.id}|{person.handle}>"
    group = next((g for g in workspace.groups.values() if g.handle == name), None)
    return f"<!subteam^{group.id}|@{group.handle}>" if group else found.group()


@dataclass(frozen=True)
class Sender:
    """Builds the payloads for one person's actions."""

    workspace: Workspace
    person: Person

    def common(self, kind: str) -> Json:
        """Return the fields that every interactive payload has."""
        return {
            "type": kind,
            "user": self._user(),
            "api_app_id": self.workspace.app_id,
            "token": VERIFICATION_TOKEN,
            "team": {"id": self.workspace.team_id, "domain": self.workspace.team_domain},
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def _user(self) -> Json:
        handle = self.person.handle
        return {
            "id": self.person.id,
            "username": handle,
            "name": handle,
            "team_id": self.person.team_id,
        }

    def command(self, channel_id: str, command: str, text: str, response_url: str) -> Json:
        """Return the payload for a slash command.

        Even in a shared channel, the team ID is the ID of the person's own team.
        """
        channel = self.workspace.channels[channel_id]
        elsewhere = self.person.team_id != TEAM_ID
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": self.person.team_id,
            "team_domain": "elsewhere" if elsewhere else self.workspace.team_domain,
            "channel_id": channel_id,
            "channel_name": channel.name,
            "user_id": self.person.id,
            "user_name": self.person.handle,
            "command": command,
            "text": text,
            "api_app_id": self.workspace.app_id,
            "is_enterprise_install": "false",
            "response_url": response_url,
            "trigger_id": self.workspace.new_trigger(self.person.id),
        }

    def action(self, message: Message, action: Json, response_url: str, typed: Json) -> Json:
        """Return the payload for pressing a button or choosing an option in a message."""
        shown = message.as_slack() | {"app_id": self.workspace.app_id}
        container = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": message.channel,
            "is_ephemeral": message.only_for is not None,
        }
        channel = self.workspace.channels[message.channel]
        payload = self.common("block_actions") | {
            "container": container,
            "trigger_id": self.workspace.new_trigger(self.person.id),
            "channel": {"id": channel.id, "name": channel.name},
            "state": {"values": state_values(message.blocks, message.elements, typed)},
            "response_url": response_url,
            "actions": [action],
        }
        return payload if message.only_for else {**payload, "message": shown}

    def view_action(self, view: View, action: Json) -> Json:
        """Return the payload for pressing a button or choosing an option in a modal."""
        return self.common("block_actions") | {
            "container": {"type": "view", "view_id": view.id},
            "trigger_id": self.workspace.new_trigger(self.person.id),
            "view": self.view(view),
            "actions": [action],
        }

    def submission(self, view: View) -> Json:
        """Return the payload for submitting a modal."""
        return self.common("view_submission") | {
            "trigger_id": self.workspace.new_trigger(self.person.id),
            "view": self.view(view),
            "response_urls": [],
        }

    def suggestion(self, view: View, block: Json, element: Json, typed: str) -> Json:
        """Return the payload for text that a person enters in a type-ahead menu."""
        return self.common("block_suggestion") | {
            "action_id": element["action_id"],
            "block_id": block["block_id"],
            "value": typed,
            "container": {"type": "view", "view_id": view.id},
            "view": self.view(view),
        }

    def shortcut(self, callback_id: str) -> Json:
        """Return the payload for a global shortcut."""
        return self.common("shortcut") | {
            "callback_id": callback_id,
            "action_ts": self.workspace.next_ts(),
            "trigger_id": self.workspace.new_trigger(self.person.id),
        }

    def message_action(self, callback_id: str, message: Message, response_url: str) -> Json:
        """Return the payload for a message shortcut."""
        channel = self.workspace.channels[message.channel]
        return self.common("message_action") | {
            "callback_id": callback_id,
            "action_ts": self.workspace.next_ts(),
            "trigger_id": self.workspace.new_trigger(self.person.id),
            "response_url": response_url,
            "message_ts": message.ts,
            "channel": {"id": channel.id, "name": channel.name},
            "message": message.as_slack(),
        }

    def event(self, event: Json, event_id: str) -> Json:
        """Return the payload for an event.

        If Slack delivers an event again, the `event_id` stays the same.
        """
        workspace = self.workspace
        installed = {
            "enterprise_id": None,
            "team_id": workspace.team_id,
            "user_id": workspace.bot_user_id,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": workspace.team_id,
            "api_app_id": workspace.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": event_id,
            "event_time": int(workspace.now()),
            "authorizations": [installed],
            "is_ext_shared_channel": False,
        }

    def home_opened(self, channel_id: str) -> Json:
        """Return an `app_home_opened` event, including the person's Home tab if there is one."""
        home = self.workspace.homes.get(self.person.id)
        event = {
            "type": "app_home_opened",
            "user": self.person.id,
            "channel": channel_id,
            "tab": "home",
            "event_ts": self.workspace.next_ts(),
        }
        return {**event, "view": self.view(home)} if home else event

    def direct_message(self, message: Message) -> Json:
        """Return a `message.im` event that contains the ID of the person's team."""
        return {
            "type": "message",
            "channel": message.channel,
            "channel_type": "im",
            "user": message.user,
            "team": self.person.team_id,
            "text": message.text,
            "ts": message.ts,
            "event_ts": message.ts,
            "client_msg_id": f"m{message.number}",
        }

    def view(self, view: View) -> Json:
        """Return a modal in the form that payloads use, including the values of its inputs."""
        shown = view.as_slack(self.workspace.app_id, self.workspace.bot_id)
        return shown | {"state": {"values": view_state(view)}}


def action_of(block: Json, element: Json, state: Json, action_ts: str) -> Json:
    """Return an entry for the `actions` list of a payload."""
    action: Json = {
        "type": element["type"],
        "action_id": element["action_id"],
        "block_id": block.get("block_id"),
        "action_ts": action_ts,
    }
    if element["type"] != "button":
        return action | state
    about: dict[str, Any] = {
        key: element[key] for key in ("text", "value", "style") if key in element
    }
    return action | about
