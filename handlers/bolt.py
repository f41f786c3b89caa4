"""Bolt in Gatehouse: it distinguishes surfaces; API calls and verification are our own."""

import re
from collections.abc import Awaitable, Callable
from typing import get_args

from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.app import Gatehouse
from bot.ops.current_delivery import following
from bot.ops.logs import bolt_logger
from handlers.answering import receive
from handlers.interactions import Body
from handlers.listeners import LISTENERS, Surface

EVERYTHING = re.compile(".*")


class GatehouseApp(AsyncApp):
    """A Bolt app that dispatches all requests, and measures how long acknowledgements take.

    It processes before it responds: `receive` only reads, acknowledges and starts a task
    (docs/decisions/0006). Otherwise Bolt polls every 10 ms for the acknowledgement. It makes no API
    calls: the token was checked at startup.
    """

    def __init__(self, bot: Gatehouse) -> None:
        async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
            return AuthorizeResult(
                enterprise_id=enterprise_id,
                team_id=team_id,
                bot_token=bot.settings.slack_bot_token.get_secret_value(),
                bot_user_id=bot.people.bot_user_id,
            )

        super().__init__(
            # Without a name, Bolt searches all loaded modules for the file that created the app.
            name="gatehouse",
            client=bot.web,
            authorize=authorize,
            process_before_response=True,
            attaching_function_token_enabled=False,
            # Bolt's loggers use this logger's level. Below ERROR, Bolt warns about tokens that it
            # should not use, and logs forged requests with their bodies.
            logger=bolt_logger(),
            # handlers.endpoint verifies signatures: Bolt answers a malformed one with 500.
            request_verification_enabled=False,
            signing_secret="verified by handlers.endpoint",  # noqa: S106 - not a secret
        )
        self._bot = bot
        for surface in get_args(Surface):
            getattr(self, surface)(EVERYTHING)(_passing_on(bot, surface))
        self.view_closed(EVERYTHING)(_acknowledge)
        bot.metrics.expect_commands(
            {"slack.request", *(listener.name for listener in LISTENERS.values())}
        )

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's answer to one request from Slack."""
        started = self._bot.clock.monotonic()
        # Only payloads with a trigger act immediately; events are identified by their ids.
        signatures = (
            req.headers.get("x-slack-signature", [""]) if "trigger_id" in req.body else [""]
        )
        with following(signatures[0]):
            answer = await super().async_dispatch(req)
        self._bot.metrics.ack_seconds.observe(self._bot.clock.monotonic() - started)
        return answer


def _passing_on(bot: Gatehouse, surface: Surface) -> Callable[..., Awaitable[BoltResponse | None]]:
    async def pass_on(ack: AsyncAck, body: Body) -> BoltResponse | None:
        return await receive(bot, surface, ack, body)

    return pass_on


async def _acknowledge(ack: AsyncAck) -> None:
    await ack()
