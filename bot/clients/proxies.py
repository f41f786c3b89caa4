"""Proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, for all calls alike."""

from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient


def is_any_set() -> bool:
    """Return whether calls go through a proxy, as far as `NO_PROXY` lets them."""
    return bool(getproxies_environment())


def proxy_for(host: str) -> str | None:
    """Return the proxy for `https://` to a host, or None to connect directly."""
    proxies = getproxies_environment()
    return None if proxy_bypass_environment(host, proxies) else proxies.get("https")


def slack_web_client(
    token: str, base_url: str, session: aiohttp.ClientSession, seconds: int = 30
) -> AsyncWebClient:
    """Return Slack's own client on a session of ours, which knows the proxies.

    Slack's client would read `HTTPS_PROXY` by itself, and would not mind `NO_PROXY`.
    """
    client = AsyncWebClient(
        token=token,
        base_url=base_url.rstrip("/") + "/",
        session=session,
        timeout=seconds,
        # Posts are repeated by the outbox, which knows what it posted; nothing here repeats them.
        retry_handlers=[],
    )
    client.proxy = None
    return client
