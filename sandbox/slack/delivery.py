"""Delivers payloads to the bot, and handles the bot's replies as Slack does.

Payloads are sent over Socket Mode if the bot is connected, and otherwise as signed HTTP requests.
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

    `status` is the HTTP status, or 0 if the bot could not be reached or did not respond in time.
    `seconds` is how long the bot took to respond. `error` is the error that Slack shows:
    `operation_timeout`, `dispatch_failed`, or the reason why the blocks in the reply were refused.
    """

    status: int
    body: str
    seconds: float
    error: str | None = None

    @property
    def json(self) -> Any:
        """The response parsed as JSON, or None if the response is not valid JSON."""
        return as_json(self.body)


def sign(secret: str, timestamp: str, body: str) -> str:
    """Return Slack's v0 signature. See "Verifying requests from Slack" in Slack's documentation."""
    base = f"v0:{timestamp}:{body}".encode()
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


def _now() -> float:
    """Return the current time on the clock that timeouts use."""
    return asyncio.get_running_loop().time()


class Deliverer:
    """Sends payloads to the bot.

    Args:
        session: The HTTP client session.
        signing_secret: The secret used to sign requests.
        by_socket: A function that sends a payload over Socket Mode, or returns None if the bot is
            not connected.
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
        """Deliver an interaction, such as a button press or a submitted modal."""
        return await self._deliver("interactive", payload, {"payload": json.dumps(payload)})

    async def event(self, payload: Json, retry: int = 0, reason: str = "") -> Delivery:
        """Deliver an event. `retry` is 0 for the first attempt, 1 for the second, and so on."""
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
        """POST any body and headers to the bot, for example to test forged or stale requests."""
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
        """Deliver a payload over Socket Mode, or return None if the bot is not connected."""
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
        """Return the headers for a correctly signed request that has this body."""
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
    """Show the bot's response to a command, or show an error and return the name of the error."""
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
    """Post a message from Slackbot that only one person can see."""
    message = Message(channel, workspace.next_ts(), "USLACKBOT", words, only_for=user)
    workspace.post(message)


def post_reply(workspace: Workspace, key: str, reply: Json, command: str | None = None) -> None:
    """Show a reply from the bot, which was sent to a response_url or as the answer to a command.

    Raises:
        Refusal: The text or the blocks of the reply are not valid.
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
    """Return a new message with the text and blocks of a reply."""
    ts = workspace.next_ts()
    blocks = with_block_ids({"blocks": reply.get("blocks")}, ts)["blocks"]
    user, thread = workspace.bot_user_id, reply.get("thread_ts")
    return Message(channel, ts, user, reply["text"], blocks, thread_ts=thread)


def show_submission_reply(workspace: Workspace, view: View, delivery: Delivery) -> None:
    """Close a modal, update it or keep it open, depending on the bot's response."""
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
    """Show each error next to its input. If a block_id is unknown, show a general error."""
    known = {block.get("block_id") for block in view.blocks if block.get("type") == "input"}
    workspace.fail(view, errors if errors and set(errors) <= known else {"": TROUBLE})


def as_json(text: str) -> Any:
    """Return the value of a JSON text, or None if the text is not valid JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
