"""The HTTP server: Slack's requests, health, readiness and metrics."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from aiohttp import HttpVersion11, web
from yarl import URL

from bot.ops.secrets import is_loopback

MOST_BYTES = 1024 * 1024
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
# Prefixes of headers set by proxies, behind which every client looks local.
FORWARDED = (
    *("forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-original-host"),
    *("true-client-ip", "x-envoy-", "cf-", "cdn-"),
)
PLAIN = frozenset({"", "identity"})
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ready = Callable[[], Awaitable[str | None]]
Besides = Callable[[], Sequence[str]]


class Scrape(Protocol):
    """Renders the metrics page."""

    def __call__(self, *, is_openmetrics: bool) -> Awaitable[bytes]:
        """Return the page in the Prometheus or OpenMetrics format."""
        ...


@web.middleware
async def _plain_bodies_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse compressed bodies: Slack doesn't send any, and a small one could fill the memory."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in PLAIN:
        return web.Response(status=415, text="compressed bodies are not accepted")
    return await handler(request)


async def _without_version(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "Gatehouse"


def make_server(
    slack: Handler | None,
    ready: Ready,
    scrape: Scrape,
    metrics_token: str | None,
    besides: Besides = list,
) -> web.Application:
    """Return the aiohttp application.

    Args:
        slack: Answers `POST /slack/events`; None in Socket Mode.
        ready: Returns None, or a word for the part that is not ready.
        scrape: Renders the metrics.
        metrics_token: The bearer token for `/metrics`; None to allow only this machine.
        besides: Returns problems that don't affect readiness.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_request: web.Request) -> web.Response:
        missing = await ready()
        if missing is not None:
            return web.Response(text=missing, status=503)
        broken = besides()
        return web.Response(text=f"ready, except {', '.join(broken)}" if broken else "ready")

    async def metrics(request: web.Request) -> web.Response:
        refusal = _metrics_refusal(request, metrics_token)
        if refusal is not None:
            return refusal
        is_openmetrics = OPENMETRICS in request.headers.get("Accept", "")
        page = await scrape(is_openmetrics=is_openmetrics)
        kind = OPENMETRICS_TYPE if is_openmetrics else "text/plain; version=0.0.4; charset=utf-8"
        return web.Response(body=page, headers={"Content-Type": kind})

    server = web.Application(client_max_size=MOST_BYTES, middlewares=[_plain_bodies_only])
    server.on_response_prepare.append(_without_version)
    server.router.add_get("/healthz", healthz)
    server.router.add_get("/readyz", readyz)
    server.router.add_get("/metrics", metrics)
    if slack is not None:
        server.router.add_post("/slack/events", slack)
    return server


def _metrics_refusal(request: web.Request, token: str | None) -> web.Response | None:
    if token is not None:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, f"Bearer {token}".encode()):
            return None
        challenge = {"WWW-Authenticate": "Bearer"}
        return web.Response(status=401, text="METRICS_TOKEN is required", headers=challenge)
    if _is_loopback(request.remote) and not _is_proxied(request):
        return None
    return web.Response(status=403, text="set METRICS_TOKEN to read metrics from elsewhere")


def _is_proxied(request: web.Request) -> bool:
    """Return True if a proxy or tunnel on this machine may have forwarded the request.

    They add forwarding headers, pass on the original host name, or speak HTTP/1.0 (nginx).
    """
    is_forwarded = any(name.lower().startswith(FORWARDED) for name in request.headers)
    try:
        host = URL(f"http://{request.headers.get('Host', '')}").host or ""
    except ValueError:
        return True
    is_old = request.version < HttpVersion11
    return is_forwarded or is_old or not _is_loopback(host)


def _is_loopback(address: str | None) -> bool:
    return is_loopback((address or "").removeprefix("::ffff:"))
