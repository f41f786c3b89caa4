"""Signed Slack requests over kept-alive connections, at almost no cost for the sender.

The load generator shares two cores with the measured program and must not slow it down. So it
writes bytes to asyncio streams instead of using an HTTP library.
"""

import asyncio
import hashlib
import hmac
import time
import uuid
from urllib.parse import urlencode, urlsplit


def signed(url: str, secret: str, fields: dict[str, str]) -> bytes:
    """Return the bytes of a `POST /slack/events` with these form fields, signed now."""
    body = urlencode(fields)
    timestamp = str(int(time.time()))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256)
    lines = (
        "POST /slack/events HTTP/1.1",
        f"Host: {urlsplit(url).netloc}",
        "User-Agent: Slackbot 1.0 (+https://api.slack.com/robots)",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        f"X-Slack-Request-Timestamp: {timestamp}",
        f"X-Slack-Signature: v0={digest.hexdigest()}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def command_fields(
    user: str, team: str, command: str, text: str, response_url: str
) -> dict[str, str]:
    """Return the fields of a slash command that the bot reads."""
    return {
        "team_id": team,
        "team_domain": "load",
        "channel_id": "C0GENERAL",
        "channel_name": "general",
        "user_id": user,
        "user_name": user.lower(),
        "command": command,
        "text": text,
        "api_app_id": "A0GATEHOUSE",
        "is_enterprise_install": "false",
        "response_url": response_url,
        # As in Slack, all deliveries have different ids.
        "trigger_id": uuid.uuid4().hex,
    }


class Connection:
    """A kept-alive connection that sends a request's bytes and reads the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> "Connection":
        """Connect to the host and port of `url`."""
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request. Return the status and the body of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return status, await self._reader.readexactly(int(length or 0))

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()
