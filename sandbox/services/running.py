"""Starts the services for a test, for the sandbox, or on their own.

async with running_services(ServicesState()) as services:
    services.state.limits.block(("eu", None), 44)
    ...  # call services.url
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from sandbox.services import weather
from sandbox.services.app import make_services_app
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.state import (
    EMAIL_KEY,
    FLOW_ACCOUNT_SID,
    FLOW_AUTH_TOKEN,
    SURVEY_FLOW,
    WELCOME_FLOW,
    ServicesState,
    inventory_token,
)

HOST = "127.0.0.1"
# When the services stop, they drop calls in progress, as any server does.
STOP_SECONDS = 0.2


@dataclass(frozen=True)
class RunningServices:
    """The running services. `url` is the base address, without a slash at the end."""

    url: str
    state: ServicesState

    def inventory_url(self, data_center: str) -> str:
        """Return the base address of a data center's inventory API."""
        return f"{self.url}/{data_center}/inventory/v1"

    @property
    def weather_url(self) -> str:
        """The base address of the other API."""
        return f"{self.url}{weather.ROOT}"

    @property
    def token_url(self) -> str:
        """The address of the OAuth token endpoint."""
        return f"{self.url}/oauth/token"

    def bot_settings(self) -> dict[str, str]:
        """Return the bot settings for these services: addresses, credentials and flow aliases."""
        data_centers = {
            suffix: {
                "authtoken": inventory_token(suffix),
                "base_url": self.inventory_url(suffix),
            }
            for suffix in DATA_CENTERS
        }
        return {
            "INVENTORY_DATA_CENTERS": json.dumps(data_centers),
            "FLOW_BASE_URL": self.url,
            "FLOW_ACCOUNT_SID": FLOW_ACCOUNT_SID,
            "FLOW_AUTH_TOKEN": FLOW_AUTH_TOKEN,
            "FLOW_ALIASES": json.dumps({"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW}),
            "EMAIL_BASE_URL": self.url,
            "EMAIL_API_KEY": EMAIL_KEY,
        }


@asynccontextmanager
async def running_services(
    state: ServicesState | None = None, port: int = 0
) -> AsyncIterator[RunningServices]:
    """Run the services on a loopback port until the `with` block ends.

    Port 0 means any free port.
    """
    state = state or ServicesState()
    app = make_services_app(state)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield RunningServices(f"http://{HOST}:{runner.addresses[0][1]}", state)
    finally:
        await runner.cleanup()


def told_to_stop() -> asyncio.Event:
    """Return an event that is set when a signal tells the program to stop.

    SIGINT and SIGTERM set the event. SIGHUP also sets the event, unless the program was started
    with `nohup`.
    """
    stop, numbers = asyncio.Event(), [signal.SIGINT, signal.SIGTERM]
    # A closed terminal sends SIGHUP. Programs started with `nohup` ignore it and keep running.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def serve_alone(port: int, latency_seconds: float) -> None:
    """Print the services' address, and run the services until a signal stops them."""
    stop = told_to_stop()
    state = ServicesState(latency_seconds=latency_seconds)
    async with running_services(state, port) as services:
        print(f"The three services answer at {services.url} (Ctrl-C stops them).", flush=True)
        await stop.wait()
