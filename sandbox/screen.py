"""Describes one person's screen: the channels, messages, open modal and Home tab."""

from dataclasses import asdict
from typing import Any

from sandbox.manifest import Manifest
from sandbox.people import Channel, Person
from sandbox.slack.filling import NotThereError, view_state
from sandbox.slack.messages import Json, Message, View
from sandbox.slack.workspace import Workspace

# Per channel, so that a busy channel doesn't push out the messages of a quiet channel.
SHOWN_MESSAGES = 300


def welcome(workspace: Workspace, manifest: Manifest) -> Json:
    """Return the part of the screen that never changes: the people, commands and shortcuts."""
    return {
        "people": [about(person) for person in workspace.people.values()],
        "commands": [asdict(command) for command in manifest.commands],
        "shortcuts": [asdict(shortcut) for shortcut in manifest.shortcuts],
    }


def about(person: Person) -> Json:
    """Return a person's details for the page."""
    names = {"id": person.id, "name": person.name, "handle": person.handle}
    return {**names, "role": person.role, "tz": person.tz}


def screen(workspace: Workspace, user: str) -> Json:
    """Return everything on this person's screen. `home` is None if there is no Home tab yet."""
    home, modal = workspace.homes.get(user), workspace.open_view(user)
    workspace.direct(user)
    channels = [c for c in workspace.channels.values() if user in c.members]
    return {
        "version": workspace.version,
        "channels": [as_listed(channel) for channel in channels],
        "messages": [as_shown(workspace, m) for m in shown_messages(workspace, channels, user)],
        "modal": as_modal(modal) if modal else None,
        "home": as_modal(home) if home else None,
    }


def shown_messages(workspace: Workspace, channels: list[Channel], user: str) -> list[Message]:
    """Return the newest messages in each channel, oldest first."""
    left = {channel.id: SHOWN_MESSAGES for channel in channels}
    shown = []
    for message in reversed(workspace.all_messages):
        if left.get(message.channel) and is_visible(message, user):
            left[message.channel] -= 1
            shown.append(message)
    return shown[::-1]


def is_visible(message: Message, user: str) -> bool:
    """Return True if this person can see the message."""
    return not message.deleted and message.only_for in {None, user}


def as_listed(channel: Channel) -> Json:
    """Return a channel's entry in the list of channels."""
    kind = "direct" if channel.is_direct else "private" if channel.is_private else "public"
    name = "Gatehouse" if channel.is_direct else channel.name
    return {"id": channel.id, "name": name, "kind": kind}


def as_shown(workspace: Workspace, message: Message) -> Json:
    """Return a message with its author. Newer messages have a higher `number`."""
    return {
        "channel": message.channel,
        "ts": message.ts,
        "number": message.number,
        "changes": len(message.versions),
        "author": author(workspace, message.user),
        "text": message.text,
        "blocks": message.blocks,
        "thread_ts": message.thread_ts,
        "ephemeral": message.only_for is not None,
        "command": message.command,
    }


def author(workspace: Workspace, user: str) -> Json:
    """Return the author of a message: the bot, Slack itself, or a person."""
    if user == workspace.bot_user_id:
        return {"id": user, "name": "Gatehouse", "kind": "app"}
    if user == "USLACKBOT":
        return {"id": user, "name": "Slackbot", "kind": "slack"}
    return {"id": user, "name": workspace.people[user].name, "kind": "person"}


def as_modal(view: View) -> Json:
    """Return a modal or Home tab with its values and errors."""
    body = view.body
    return {
        "id": view.id,
        "hash": view.hash,
        "title": view.title,
        "submit": (body.get("submit") or {}).get("text"),
        "close": (body.get("close") or {}).get("text"),
        "blocks": view.blocks,
        "values": view_state(view),
        "errors": view.errors,
    }


def find_place(workspace: Workspace, body: Json) -> Message | View:
    """Return the message or modal that a person's action came from.

    Raises:
        NotThereError: The message or modal no longer exists.
    """
    if body.get("view_id"):
        place: Any = workspace.views.get(body["view_id"])
    else:
        found = (m for m in workspace.all_messages if m.channel == body.get("channel"))
        own = (m for m in found if m.ts == body.get("ts") and is_visible(m, body["as"]))
        place = next(own, None)
    if not isinstance(place, Message | View):
        raise NotThereError("That no longer exists.")
    return place
