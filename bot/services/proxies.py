"""The proxies of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, the same for all calls."""

from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient


def is_any_set() -> bool:
    """Return True if calls may go through a proxy."""
    return bool(getproxies_environment())


def proxy_for(host: str) -> str | None:
    """Return the proxy for `https://` to a host, or None to connect directly."""
    proxies = getproxies_environment()
    return None if proxy_bypass_environment(host, proxies) else proxies.get("https")


def slack_web_client(
    token: str, base_url: str, session: aiohttp.ClientSession, seconds: int = 30
) -> AsyncWebClient:
    """Return Slack's client on our session, which follows the proxy settings.

    Left alone, Slack's client reads `HTTPS_PROXY` but ignores `NO_PROXY`.
    """
    client = AsyncWebClient(
        token=token,
        base_url=base_url.rstrip("/") + "/",
        session=session,
        timeout=seconds,
        # The outbox repeats posts, as it knows what it posted; nothing here does.
        retry_handlers=[],
    )
    client.proxy = None
    return client
