"""Bolt as Gatehouse uses it: it measures, and leaves API calls and verification to us."""

from typing import Any

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.current_delivery import following
from bot.ops.logs import bolt_logger
from bot.settings import Settings
from bot.slack.people import People


class MeasuredApp(AsyncApp):
    """Bolt that measures how long each acknowledgement takes, over HTTP and in Socket Mode.

    It processes before it responds: our listeners only read, acknowledge and start a task
    (docs/decisions/0006). Otherwise Bolt polls every 10 ms for the acknowledgement.
    """

    def __init__(self, metrics: Metrics, clock: Clock, **settings: Any) -> None:  # noqa: ANN401 - Bolt's
        super().__init__(process_before_response=True, **settings)
        self._ack_seconds = metrics.ack_seconds
        self._monotonic = clock.monotonic

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Return Bolt's answer to one request from Slack."""
        started = self._monotonic()
        # Only payloads with a trigger act at once; events are known by their ids.
        signatures = (
            req.headers.get("x-slack-signature", [""]) if "trigger_id" in req.body else [""]
        )
        with following(signatures[0]):
            answer = await super().async_dispatch(req)
        self._ack_seconds.observe(self._monotonic() - started)
        return answer


def bolt_app(
    settings: Settings, people: People, web: AsyncWebClient, metrics: Metrics, clock: Clock
) -> AsyncApp:
    """Return a Bolt app that makes no API calls: the token was checked at startup."""

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
        attaching_function_token_enabled=False,
        # Bolt gives its own loggers the level of this one. Below an error it warns of tokens that
        # it was not meant to use, and shows forged requests with their bodies.
        logger=bolt_logger(),
        # bot.server verifies signatures: Bolt answers a malformed one with 500.
        request_verification_enabled=False,
        signing_secret="verified by bot.server",  # noqa: S106 - not a secret
    )
