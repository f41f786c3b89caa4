"""Starts and stops the whole sandbox: the services, Slack, the bot and the page."""

import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.bot_process import BotProcess, BotStoppedError
from sandbox.flows import ALIASES, PRACTICE, PRACTICE_FLOW
from sandbox.greedy import CLIENT, TOKEN, Greedy
from sandbox.manifest import read_manifest
from sandbox.panel import Panel
from sandbox.people import ROLES
from sandbox.ports import free_port, port_near
from sandbox.services import weather
from sandbox.services.running import RunningServices, running_services, told_to_stop
from sandbox.services.state import Flow, ServicesState
from sandbox.slack.server import RunningSlack, running_slack
from sandbox.slack.workspace import Workspace
from sandbox.web import Page

LOOPBACK = "127.0.0.1"
SERVICE_SECONDS = 0.05


def bot_settings(
    slack: RunningSlack, services: RunningServices, database: Path, gateway_port: int
) -> dict[str, str]:
    """Return the settings that connect the bot to the rest of the sandbox."""
    client = {
        "token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest(),
        "organizations": ["*", weather.NAME],
        "methods": ["GET"],
        "owner": "U0OPERATOR",
        "flows": ["welcome"],
    }
    api = {
        "base_url": services.weather_url,
        "token": weather.TOKEN,
        "limits": {"minute": weather.PER_MINUTE},
    }
    return {
        # The bot must not read the developer's own settings file.
        "GATEHOUSE_CONFIG": "",
        "GATEWAY_PORT": str(gateway_port),
        "GATEWAY_CLIENTS": json.dumps({CLIENT: client}),
        "APIS": json.dumps({weather.NAME: api}),
        **services.bot_settings(),
        "FLOW_ALIASES": json.dumps(ALIASES),
        "FLOW_POLICIES": json.dumps({"practice": PRACTICE}),
        "SLACK_BOT_TOKEN": slack.workspace.bot_token,
        "SLACK_SIGNING_SECRET": slack.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "DATABASE_URL": f"sqlite:///{database}",
        "ROLES": json.dumps(ROLES),
        "APPROVALS_CHANNEL": "C0APPROVALS",
        "ALERTS_CHANNEL": "C0ALERTS",
        "LOG_FORMAT": "console",
        "LOG_LEVEL": "WARNING",
    }


@asynccontextmanager
async def running_sandbox(
    port: int = 0, host: str = LOOPBACK, **overrides: str
) -> AsyncIterator["Sandbox"]:
    """Run the whole sandbox except the bot. To start the bot, call `Sandbox.bot.start()`.

    Args:
        port: The page's port, or 0 for any free port.
        host: The address that the page listens on. Regardless of the address, the page answers only
            requests to a loopback name such as `localhost`.
        overrides: Bot settings that replace the defaults, such as `APPROVALS_NEEDED="2"`.

    Raises:
        OSError: The port is already in use.
    """
    manifest = read_manifest()
    workspace = Workspace(should_escape=manifest.should_escape)
    workspace.scopes = manifest.scopes
    page = Page(manifest)
    with tempfile.TemporaryDirectory(prefix="gatehouse-sandbox-") as folder:
        async with (
            running_services(ServicesState(latency_seconds=SERVICE_SECONDS)) as services,
            running_slack(workspace, host=host, port=port, add_routes=page.add_routes) as slack,
        ):
            database = Path(folder) / "gatehouse.db"
            services.state.flows[PRACTICE_FLOW] = Flow(PRACTICE_FLOW, name="Practice")
            gateway_port = port_near(port + 1) if port else free_port()
            settings = bot_settings(slack, services, database, gateway_port) | overrides
            bot = BotProcess(settings, workspace.changed)
            slack.bot_url = bot.url
            greedy = Greedy(services, f"http://127.0.0.1:{gateway_port}")
            page.connect(slack, bot, Panel(slack, services, greedy))
            try:
                yield Sandbox(slack, services, bot, database, greedy)
            finally:
                await greedy.close()
                page.close()
                await bot.stop()


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox. `database` is the path to the bot's SQLite database."""

    slack: RunningSlack
    services: RunningServices
    bot: BotProcess
    database: Path
    greedy: Greedy

    @property
    def url(self) -> str:
        """The page's address."""
        return self.slack.address


async def serve(host: str, port: int, overrides: dict[str, str]) -> int:
    """Run the sandbox until a signal stops it, and return the exit code."""
    stop = told_to_stop()
    async with running_sandbox(port, host, **overrides) as sandbox:
        starting = asyncio.create_task(sandbox.bot.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return 0
        try:
            starting.result()
        except BotStoppedError as error:
            stopping.cancel()
            print(f"The sandbox cannot start: {error}.", file=sys.stderr)
            return 1
        print(f"Gatehouse is at {sandbox.url} (Ctrl-C stops everything).", flush=True)
        await stopping
    return 0
