"""Deliveries to the bot, and Slack's handling of the replies.

Slack sends signed HTTP requests, or uses Socket Mode while the bot is connected.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp

from sandbox.slack.messages import Json, Message, View
from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import check_message, check_view
from sandbox.slack.workspace import Workspace, with_block_ids

ACK_SECONDS = 3
TROUBLE = "We had some trouble connecting. Try again?"

SendBySocket = Callable[[str, Json, Json], Awaitable[Json | None]]


@dataclass(frozen=True)
class Delivery:
    """The bot's response to a delivery.

    `status` is the HTTP status (0: no response within three seconds, or no connection), `body` the
    answer, and `seconds` the time that the answer took. `error` is the error that Slack shows:
    `operation_timeout`, `dispatch_failed`, or the refusal of the reply's blocks.
    """

    status: int
    body: str
    seconds: float
    error: str | None = None

    @property
    def json(self) -> Any:
        """The response as JSON, or None if it is not JSON."""
        return as_json(self.body)


def sign(secret: str, timestamp: str, body: str) -> str:
    """Return Slack's v0 signature. Source: Slack's page "Verifying requests from Slack"."""
    base = f"v0:{timestamp}:{body}".encode()
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


def _now() -> float:
    """Return the event loop's time, which timeouts use too."""
    return asyncio.get_running_loop().time()


class Deliverer:
    """Sends payloads to the bot.

    Args:
        session: The client session for HTTP.
        signing_secret: The secret that signs requests.
        by_socket: Sends a payload over Socket Mode; returns None if the bot is not connected.
    """

    def __init__(
        self, session: aiohttp.ClientSession, signing_secret: str, by_socket: SendBySocket
    ) -> None:
        self.bot_url: str | None = None
        # Tests raise this limit if other programs share the processor.
        self.ack_seconds: float = ACK_SECONDS
        self.signing_secret = signing_secret
        self._session = session
        self._by_socket = by_socket

    async def command(self, fields: Json) -> Delivery:
        """Deliver a slash command."""
        return await self._deliver("slash_commands", fields, fields)

    async def interaction(self, payload: Json) -> Delivery:
        """Deliver a person's action in a message or a modal."""
        return await self._deliver("interactive", payload, {"payload": json.dumps(payload)})

    async def event(self, payload: Json, retry: int = 0, reason: str = "") -> Delivery:
        """Deliver an event for the first time, or repeat it for the `retry`th time."""
        fields = {"retry_attempt": retry, "retry_reason": reason}
        began = _now()
        reply = await self._over_socket("events_api", payload, began, **fields)
        if reply is not None:
            return reply
        body = json.dumps(payload)
        headers = {**self.headers(body), "Content-Type": "application/json"}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": reason}
        return await self.raw(body, headers)

    async def raw(self, body: str, headers: dict[str, str]) -> Delivery:
        """POST any body with any headers: for forged, stale and broken requests."""
        address = f"{str(self.bot_url).rstrip('/')}/slack/events"
        began = _now()
        try:
            async with asyncio.timeout(self.ack_seconds):
                async with self._session.post(address, data=body.encode(), headers=headers) as got:
                    status, text = got.status, await got.text()
        except TimeoutError:
            return Delivery(0, "", _now() - began, "operation_timeout")
        except aiohttp.ClientError:
            return Delivery(0, "", _now() - began, "dispatch_failed")
        error = None if status == 200 else "dispatch_failed"
        return Delivery(status, text, _now() - began, error)

    async def _deliver(self, kind: str, payload: Json, fields: Json) -> Delivery:
        reply = await self._over_socket(kind, payload, _now())
        return reply or await self.raw(urlencode(fields), self.headers(urlencode(fields)))

    async def _over_socket(
        self, kind: str, payload: Json, began: float, **fields: Any
    ) -> Delivery | None:
        """Deliver over Socket Mode. Returns None if the bot is not connected."""
        try:
            async with asyncio.timeout(self.ack_seconds):
                reply = await self._by_socket(kind, payload, fields)
        except TimeoutError:
            return Delivery(0, "", _now() - began, "operation_timeout")
        if reply is None:
            return None
        body = json.dumps(reply["payload"]) if reply.get("payload") else ""
        return Delivery(200, body, _now() - began)

    def headers(self, body: str) -> dict[str, str]:
        """Return the headers of a correctly signed request."""
        timestamp = str(int(time.time()))
        return {
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": sign(self.signing_secret, timestamp, body),
        }


def show_command_reply(
    workspace: Workspace, fields: Json, delivery: Delivery, key: str
) -> str | None:
    """Show the bot's response to a command. Returns the error if Slack shows that instead."""
    error = delivery.error
    reply = delivery.json if isinstance(delivery.json, dict) else {"text": delivery.body}
    if error is None and delivery.body.strip():
        try:
            post_reply(workspace, key, reply, f"{fields['command']} {fields['text']}".strip())
        except Refusal as refusal:
            error = refusal.error
    if error:
        words = f"{fields['command']} failed with the error “{error}”"
        tell_as_slackbot(workspace, fields["user_id"], fields["channel_id"], words)
    return error


def tell_as_slackbot(workspace: Workspace, user: str, channel: str, words: str) -> None:
    """Show one person a message from Slack itself."""
    message = Message(channel, workspace.next_ts(), "USLACKBOT", words, only_for=user)
    workspace.post(message)


def post_reply(workspace: Workspace, key: str, reply: Json, command: str | None = None) -> None:
    """Post a reply that came to a response_url or with a command's acknowledgement.

    Raises:
        Refusal: `check_message` refuses the reply.
    """
    url = workspace.response_urls[key]
    if reply.get("delete_original"):
        if url.original:
            workspace.delete(url.original)
        return
    check_message(reply.get("text"), reply.get("blocks"), whole=False)
    if reply.get("replace_original") and url.original and not url.original.deleted:
        blocks = with_block_ids({"blocks": reply.get("blocks")}, url.original.ts)["blocks"]
        workspace.edit(url.original, reply["text"], blocks)
        return
    posted = workspace.post(reply_message(workspace, url.channel, reply))
    if reply.get("response_type", "ephemeral") == "ephemeral":
        posted.only_for = url.user
    else:
        posted.command = command
    if url.original is None or url.original.deleted:
        url.original = posted


def reply_message(workspace: Workspace, channel: str, reply: Json) -> Message:
    """Return a new message from a post to a response_url."""
    ts = workspace.next_ts()
    blocks = with_block_ids({"blocks": reply.get("blocks")}, ts)["blocks"]
    user, thread = workspace.bot_user_id, reply.get("thread_ts")
    return Message(channel, ts, user, reply["text"], blocks, thread_ts=thread)


def show_submission_reply(workspace: Workspace, view: View, delivery: Delivery) -> None:
    """Close, update or keep a modal as the bot's acknowledgement says."""
    reply = delivery.json if isinstance(delivery.json, dict) else {}
    action = reply.get("response_action")
    try:
        if delivery.error:
            workspace.fail(view, {"": TROUBLE})
        elif action == "errors":
            show_errors(workspace, view, reply.get("errors") or {})
        elif action == "update":
            check_view(reply.get("view"))
            workspace.show(view, reply["view"])
        else:
            workspace.close(view)
    except Refusal:
        workspace.fail(view, {"": TROUBLE})


def show_errors(workspace: Workspace, view: View, errors: dict[str, str]) -> None:
    """Show errors at the inputs. An unknown block_id is a general error, as in Slack."""
    known = {block.get("block_id") for block in view.blocks if block.get("type") == "input"}
    workspace.fail(view, errors if errors and set(errors) <= known else {"": TROUBLE})


def as_json(text: str) -> Any:
    """Return the JSON value in a text, or None if the text is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
