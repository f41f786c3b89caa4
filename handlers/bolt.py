"""The Bolt app and its requests, for HTTP and Socket Mode."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult

from bot.app import Gatehouse
from bot.ops.logs import bolt_logger, following
from bot.settings.model import revealed
from handlers.listening import Listening

log = structlog.get_logger(__name__)

BROKEN = 500


class ListenerWithoutNeedsError(Exception):
    """A listener was registered that doesn't say which permission it needs."""


def slack_request(
    body: Mapping[str, Any],
    headers: Mapping[str, str | Sequence[str]],
    raw_body: str = "",
    mode: str = "http",
) -> AsyncBoltRequest:
    """Return Bolt's request with this parsed body.

    Bolt would parse the body of a command that contains the word "payload" as an empty one, and
    fails if a field is null.
    """
    parsed = {name: value for name, value in body.items() if value is not None}
    # Only in this mode does Bolt accept a parsed body.
    request = AsyncBoltRequest(body=parsed, headers=dict(headers), mode="socket_mode")
    request.raw_body = raw_body
    request.mode = mode
    return request


class GatehouseApp(AsyncApp):
    """A Bolt app that measures acknowledgement times and recognizes repeated requests.

    It doesn't call Slack to verify the token, because the token was checked at startup.
    """

    def __init__(self, bot: Gatehouse) -> None:
        async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
            return AuthorizeResult(
                enterprise_id=enterprise_id,
                team_id=team_id,
                bot_token=bot.settings.slack_bot_token.get_secret_value(),
                bot_user_id=bot.slack.people.bot_user_id,
            )

        super().__init__(
            # Without a name, Bolt searches all loaded modules for the file that created the app.
            name="gatehouse",
            client=bot.slack.web,
            authorize=authorize,
            signing_secret=revealed(bot.settings.slack_signing_secret),
            # Bolt then responds as soon as the listener returns. Otherwise, it looks for the
            # acknowledgement every 10 ms.
            process_before_response=True,
            attaching_function_token_enabled=False,
            # Bolt's loggers use this logger's level. At lower levels, Bolt warns about tokens that
            # it should ignore, and logs the bodies of forged requests.
            logger=bolt_logger(),
        )
        self._bot = bot
        self.listening = Listening(bot)
        self.error(self._failed)

    def require_needs(self) -> None:
        """Raise ListenerWithoutNeedsError if a listener isn't from `listening`."""
        for registered in self._async_listeners:
            listener = registered.ack_function
            if listener not in self.listening.needs:
                raise ListenerWithoutNeedsError(
                    f"The listener {listener.__module__}.{listener.__qualname__} doesn't say which"
                    " permission it needs. Register it with listener(…, Needs(…))."
                )

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's response to a request from Slack, and record how long it took."""
        started = self._bot.clock.monotonic()
        if req.mode == "socket_mode":
            req = slack_request(req.body, req.headers, mode=req.mode)
        # Check only payloads with a trigger for repeats, because events have IDs. In Socket Mode,
        # payloads have no signature, but repeats have the same trigger.
        trigger = str(req.body.get("trigger_id", ""))
        signatures = req.headers.get("x-slack-signature", [trigger])
        with following(signatures[0] if trigger else ""):
            response = await super().async_dispatch(req)
        self._bot.metrics.ack_seconds.observe(self._bot.clock.monotonic() - started)
        return response

    async def _failed(self, error: Exception) -> BoltResponse:
        """Respond to a request that couldn't be acknowledged. Slack tells the person."""
        log.error("slack.broken", exc_info=error)
        self._bot.metrics.count_command("slack.request", "broken")
        return BoltResponse(status=BROKEN, body="broken")
