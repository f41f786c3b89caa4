"""Stores the state of the stand-in workspace, such as its people, messages and open modals.

This module does no I/O. The function `now` returns the current time. Each change to the state calls
`changed()`, which wakes all code that is waiting for a change.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sandbox.people import (
    APP_ID,
    BOT_ID,
    BOT_USER_ID,
    TEAM_DOMAIN,
    TEAM_ID,
    Channel,
    Group,
    Person,
    default_channels,
    default_groups,
    default_people,
)
from sandbox.slack.faults import Faults
from sandbox.slack.messages import Json, Message, View
from sandbox.slack.refusals import Refusal

TRIGGER_SECONDS = 3
RESPONSE_URL_SECONDS = 30 * 60
RESPONSE_URL_USES = 5

# The scopes in `manifest.yml` and no others, so that a test finds a missing scope.
DEFAULT_SCOPES = (
    "commands",
    "chat:write",
    "users:read",
    "usergroups:read",
    "channels:read",
    "groups:read",
    "im:history",
)


@dataclass(frozen=True)
class Call:
    """A Web API call. `status` and `answer` are None if there was no response."""

    method: str
    args: Json
    at: float
    status: int | None
    answer: Json | None

    @property
    def ok(self) -> bool:
        """True if the response contains `"ok": true`."""
        return bool(self.answer and self.answer.get("ok"))


@dataclass
class Trigger:
    """A trigger_id, which is valid for three seconds and can be used only once."""

    user: str
    made_at: float
    used: bool = False


@dataclass
class ResponseUrl:
    """A response_url, which is valid for thirty minutes and can be used five times.

    `original` is the message that a reply can replace.
    """

    channel: str
    user: str
    made_at: float
    original: Message | None = None
    uses: int = 0


@dataclass
class Workspace:
    """A Slack workspace in which one app, the bot, is installed."""

    now: Callable[[], float] = time.time
    people: dict[str, Person] = field(default_factory=lambda: {p.id: p for p in default_people()})
    groups: dict[str, Group] = field(default_factory=lambda: {g.id: g for g in default_groups()})
    channels: dict[str, Channel] = field(
        default_factory=lambda: {c.id: c for c in default_channels()}
    )
    team_id: str = TEAM_ID
    team_domain: str = TEAM_DOMAIN
    bot_user_id: str = BOT_USER_ID
    bot_id: str = BOT_ID
    app_id: str = APP_ID
    bot_token: str = "xoxb-sandbox"
    app_token: str = "xapp-sandbox"
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    is_organization_wide: bool = False
    should_escape: bool = True
    calls: list[Call] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    all_messages: list[Message] = field(default_factory=list)
    views: dict[str, View] = field(default_factory=dict)
    homes: dict[str, View] = field(default_factory=dict)
    triggers: dict[str, Trigger] = field(default_factory=dict)
    response_urls: dict[str, ResponseUrl] = field(default_factory=dict)
    version: int = 0

    def __post_init__(self) -> None:
        self._open: dict[str, View] = {}
        self._last_ts = 0.0
        self._numbers = itertools.count(1)
        self._change = asyncio.Event()

    # Look-ups for tests.

    def messages(self, channel: str) -> list[Message]:
        """Return a channel's messages, except replies, ephemeral messages and deleted messages."""
        return [m for m in self._public(channel) if not m.thread_ts or m.thread_ts == m.ts]

    def thread(self, channel: str, ts: str) -> list[Message]:
        """Return the replies in a message's thread, but not the message itself."""
        return [m for m in self._public(channel) if m.thread_ts == ts and m.ts != ts]

    def dm(self, user: str) -> list[Message]:
        """Return the direct messages between a person and the bot, including replies in threads."""
        return self._public(direct_id(user))

    def ephemerals(self, user: str) -> list[Message]:
        """Return all ephemeral messages that this person can see, in any channel."""
        return [m for m in self.all_messages if m.only_for == user and not m.deleted]

    def open_view(self, user: str) -> View | None:
        """Return a person's open modal, or None if no modal is open."""
        return self._open.get(user)

    def calls_of(self, method: str) -> list[Call]:
        """Return all calls to a Web API method, oldest first."""
        return [call for call in self.calls if call.method == method]

    def _public(self, channel: str) -> list[Message]:
        return [
            m
            for m in self.all_messages
            if m.channel == channel and m.only_for is None and not m.deleted
        ]

    # Changes, and waiting for changes.

    def changed(self) -> None:
        """Wake all code that is waiting for a change."""
        self.version += 1
        self._change.set()
        self._change = asyncio.Event()

    def change(self) -> Coroutine[Any, Any, bool]:
        """Return a coroutine that waits for the first change after this call."""
        return self._change.wait()

    # Messages.

    def next_ts(self) -> str:
        """Return a unique ID for a new message: a time in seconds with six decimal places."""
        self._last_ts = max(self.now(), self._last_ts + 0.000001)
        return f"{self._last_ts:.6f}"

    def post(self, message: Message) -> Message:
        """Store a new message."""
        message.number = next(self._numbers)
        self.all_messages.append(message)
        self.changed()
        return message

    def edit(self, message: Message, text: str, blocks: list[Json]) -> None:
        """Replace the content of a message."""
        message.versions.append((message.text, message.blocks))
        message.text, message.blocks = text, blocks
        self.changed()

    def delete(self, message: Message) -> None:
        """Delete a message."""
        message.deleted = True
        self.changed()

    def find(self, channel: str, ts: str) -> Message | None:
        """Find a message. Return None if the message is deleted, ephemeral or unknown."""
        return next((m for m in self._public(channel) if m.ts == ts), None)

    def direct(self, user: str) -> Channel:
        """Return the channel for a person's direct messages with the bot.

        Create the channel if it doesn't exist yet.
        """
        channel_id = direct_id(user)
        if channel_id not in self.channels:
            members = {user, self.bot_user_id}
            self.channels[channel_id] = Channel(
                channel_id, "directmessage", members=members, partner=user, is_private=True
            )
        return self.channels[channel_id]

    # Triggers and response URLs.

    def new_trigger(self, user: str) -> str:
        """Return a new trigger_id for a person's action."""
        trigger_id = f"{next(self._numbers)}.{self.team_id}.{user}"
        self.triggers[trigger_id] = Trigger(user, self._passed())
        return trigger_id

    def _passed(self) -> float:
        """Return the event loop's time, or the time from `now` if a test has replaced `now`."""
        if self.now is time.time:
            with suppress(RuntimeError):
                return asyncio.get_running_loop().time()
        return self.now()

    def use_trigger(self, trigger_id: Any) -> Trigger:
        """Use a trigger_id.

        Raises:
            Refusal: The error name is `invalid_trigger_id`, `exchanged_trigger_id` or
                `expired_trigger_id`.
        """
        trigger = self.triggers.get(str(trigger_id))
        if trigger is None:
            raise Refusal("invalid_trigger_id")
        if trigger.used:
            raise Refusal("exchanged_trigger_id")
        if self._passed() - trigger.made_at > TRIGGER_SECONDS:
            raise Refusal("expired_trigger_id")
        trigger.used = True
        return trigger

    def new_response_url(self, channel: str, user: str, original: Message | None = None) -> str:
        """Create a response_url, and return the secret part at its end."""
        key = f"{next(self._numbers)}x{user}"
        self.response_urls[key] = ResponseUrl(channel, user, self.now(), original)
        return key

    def use_response_url(self, key: str) -> ResponseUrl:
        """Record one more use of a response_url.

        Raises:
            Refusal: The error name is `expired_url` after thirty minutes, or `used_url` after five
                uses.
        """
        found = self.response_urls.get(key)
        if found is None or self.now() - found.made_at > RESPONSE_URL_SECONDS:
            raise Refusal("expired_url")
        if found.uses >= RESPONSE_URL_USES:
            raise Refusal("used_url")
        found.uses += 1
        return found

    # The Home tab.

    def publish(self, user: str, body: Json) -> View:
        """Replace the content of a person's Home tab."""
        home = self.homes.get(user)
        if home is None:
            view_id = f"V{next(self._numbers):08d}"
            home = View(view_id, "", user, {}, team_id=self.people[user].team_id)
            self.homes[user] = self.views[view_id] = home
        else:
            home.versions.append(home.body)
        home.body, home.hash = with_block_ids(body, home.id), self._new_hash()
        self.changed()
        return home

    # Modals.

    def open(self, user: str, body: Json) -> View:
        """Show a new modal, and close the person's previous modal if it is still open."""
        if user in self._open:
            self.close(self._open[user])
        view_id, team_id = f"V{next(self._numbers):08d}", self.people[user].team_id
        body = with_block_ids(body, view_id)
        view = View(view_id, self._new_hash(), user, body, team_id=team_id)
        self._open[user] = self.views[view_id] = view
        self.changed()
        return view

    def show(self, view: View, body: Json) -> None:
        """Replace the content of an open modal.

        An input that is also in the new content keeps its value and its error.
        """
        view.body, view.hash = with_block_ids(body, view.id), self._new_hash()
        kept = {str(block.get("block_id")) for block in view.blocks}
        view.values = {key: value for key, value in view.values.items() if key in kept}
        view.errors = {key: words for key, words in view.errors.items() if key in kept}
        self.changed()

    def close(self, view: View) -> None:
        """Close a modal."""
        if self._open.get(view.user) is view:
            del self._open[view.user], self.views[view.id]
        self.changed()

    def fail(self, view: View, errors: dict[str, str]) -> None:
        """Show errors next to a modal's inputs."""
        view.errors = errors
        self.changed()

    def _new_hash(self) -> str:
        return f"{self.now():.0f}.h{next(self._numbers)}"


def direct_id(user: str) -> str:
    """Return the ID of the channel for a person's direct messages with the bot."""
    return "D" + user[1:]


def with_block_ids(body: Json, prefix: str) -> Json:
    """Copy a view, and add a block_id to each block that has none."""
    blocks = [
        block if block.get("block_id") else {**block, "block_id": f"{prefix}-{number}"}
        for number, block in enumerate(body.get("blocks") or [])
    ]
    return {**body, "blocks": blocks}
