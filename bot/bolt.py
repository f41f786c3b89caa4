"""Bolt as Gatehouse uses it: measured, and without calls or verification of its own."""

import re
from collections.abc import Mapping
from typing import Any

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.ops.clock import Clock
from bot.ops.deliveries import following
from bot.ops.logs import bolt_logger
from bot.ops.metrics import Metrics
from bot.settings import Settings
from bot.workflows.people import People

# The kinds of requests that have a Bolt of their own, and Slack's words for them. What else there
# is goes where its older forms are listened to: with the actions.
ANYTHING_ELSE = "action"
PARTS = ("command", "event", "action", "view", "options", "shortcut")
PART_OF: Mapping[str, str] = {
    "event_callback": "event",
    "view_submission": "view",
    "view_closed": "view",
    "block_suggestion": "options",
    "dialog_suggestion": "options",
    "shortcut": "shortcut",
    "message_action": "shortcut",
}


class MeasuredApp(AsyncApp):
    """Bolt, which tells how long every acknowledgement took, over HTTP and in Socket Mode alike.

    It answers as soon as a listener has returned: ours only read, acknowledge and start a task
    (docs/decisions/0006). Otherwise Bolt looks every 10 ms whether there is an acknowledgement.

    It asks one listener after the other whether a request is theirs, and most of what it does is
    that: so each kind of request has a Bolt of its own among `parts`, with the listeners to it, and
    so has each command by its name.
    """

    def __init__(self, metrics: Metrics, clock: Clock, **settings: Any) -> None:  # noqa: ANN401 - Bolt's
        super().__init__(process_before_response=True, **settings)
        self._settings = settings
        self.parts = {part: self._part(part) for part in PARTS}
        for part in PARTS[1:]:
            setattr(self, part, getattr(self.parts[part], part))
        self.view_closed = self.parts["view"].view_closed  # type: ignore[method-assign]
        self._ack_seconds = metrics.ack_seconds
        self._monotonic = clock.monotonic

    def _part(self, part: str) -> AsyncApp:
        """Return a Bolt for a part of the requests, with the middleware that may concern it."""
        return AsyncApp(
            process_before_response=True,
            ssl_check_enabled=part == ANYTHING_ELSE,
            url_verification_enabled=part == ANYTHING_ELSE,
            ignoring_self_events_enabled=part == "event",
            attaching_function_token_enabled=False,
            **self._settings,
        )

    def command(self, command: str | re.Pattern[str], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as Bolt has it
        """Listen to a command, or to those of a pattern that have no listener of their own."""
        part = "command"
        if isinstance(command, str):
            part = command
            self.parts.setdefault(part, self._part(part))
        return self.parts[part].command(command, *args, **kwargs)

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's answer to one request of Slack's."""
        started = self._monotonic()
        # Only what has a trigger acts at once; events are known by their ids.
        signatures = (
            req.headers.get("x-slack-signature", [""]) if "trigger_id" in req.body else [""]
        )
        with following(signatures[0]):
            answer = await self._part_of(req.body).async_dispatch(req)
        self._ack_seconds.observe(self._monotonic() - started)
        return answer

    def _part_of(self, body: Mapping[str, Any]) -> AsyncApp:
        if "command" in body:
            return self.parts.get(str(body["command"]), self.parts["command"])
        return self.parts[PART_OF.get(str(body.get("type")), ANYTHING_ELSE)]


def bolt_app(
    settings: Settings, people: People, web: AsyncWebClient, metrics: Metrics, clock: Clock
) -> AsyncApp:
    """Return Bolt without a call of its own: the token was tried at the start."""

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id,
            bot_token=settings.slack_bot_token.get_secret_value(),
            bot_user_id=people.bot_user_id,
        )

    return MeasuredApp(
        metrics,
        clock,
        # Without a name Bolt looks through every module that is loaded for the file that made it.
        name="gatehouse",
        client=web,
        authorize=authorize,
        # Bolt gives its own loggers the level of this one. Below an error it warns of tokens that
        # it was not meant to use, and shows forged requests with their bodies.
        logger=bolt_logger(),
        # bot.server verifies signatures: Bolt answers a malformed one with 500.
        request_verification_enabled=False,
        signing_secret="verified by bot.server",  # noqa: S106 - not a secret
    )
