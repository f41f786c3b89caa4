"""The stand-in Slack over Socket Mode, with Bolt's own client at the other end."""

from typing import Any

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.slack.server import running_slack


async def test_commands_go_over_the_socket_while_it_is_open() -> None:
    async with running_slack() as slack:
        app = AsyncApp(client=AsyncWebClient("xoxb-sandbox", base_url=slack.api_url))

        @app.command("/echo")
        async def echo(ack: Any, command: Any) -> None:
            await ack(command["text"])

        handler = AsyncSocketModeHandler(app, "xapp-sandbox")
        await handler.connect_async()
        try:
            await slack.until(lambda: slack.sockets)
            delivery = await slack.command("U0VIEWER", "C0GENERAL", "/echo", "hello")
            assert (delivery.status, delivery.error) == (200, None)
            assert [m.text for m in slack.workspace.ephemerals("U0VIEWER")] == ["hello"]
        finally:
            await handler.close_async()
        await slack.until(lambda: not slack.sockets)
