"""`python -m bench.peer_proxy [URL]`: the smallest aiohttp reverse proxy to URL, streaming.

Without URL it is the service behind the proxy and answers each request with a little JSON. When
ready, it prints its address as a line of JSON.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

BODY = json.dumps({"code": 0, "message": "success", "items": ["an item"] * 50}).encode()

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def serve_items(_request: web.BaseRequest) -> web.StreamResponse:
    """Return the service's application."""
    return web.Response(body=BODY, content_type="application/json")


def proxy_to(url: str, session: aiohttp.ClientSession) -> Handle:
    """Return the proxy's application."""

    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        async with session.request(
            request.method, url + request.raw_path, allow_redirects=False
        ) as response:
            answer = web.StreamResponse(status=response.status)
            answer.content_type = response.content_type
            answer.content_length = response.content_length
            await answer.prepare(request)
            async for piece in response.content.iter_any():
                await answer.write(piece)
            return answer

    return proxy


async def serve(handle: Handle) -> None:
    """Listen until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
    await stop.wait()
    await runner.cleanup()


async def main() -> None:
    """Run the proxy or the service."""
    if len(sys.argv) < 2:
        await serve(serve_items)
        return
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await serve(proxy_to(sys.argv[1], session))


if __name__ == "__main__":
    asyncio.run(main())
