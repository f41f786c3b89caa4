"""Simulates another API, which allows 30 calls in any minute. The gateway keeps its limit too."""

import math
import time
from collections import deque

from aiohttp import web

from sandbox.services.limits import Window

NAME, TOKEN = "weather", "demo-weather-token"
ROOT = "/weather/v1"
PER_MINUTE = 30


class Weather:
    """Counts the calls of the last minute."""

    def __init__(self) -> None:
        self._window = Window("sliding", 60.0)
        self._arrivals: deque[float] = deque()

    async def forecast(self, request: web.Request) -> web.Response:
        """`GET /weather/v1/{path}`."""
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "The token is wrong."}, status=401)
        now = time.monotonic()
        self._window.forget(self._arrivals, now)
        if len(self._arrivals) >= PER_MINUTE:
            seconds = math.ceil(self._window.resets_in(self._arrivals, now))
            headers = {"Retry-After": str(seconds)}
            body = {"message": f"Only {PER_MINUTE} calls a minute are allowed."}
            return web.json_response(body, status=429, headers=headers)
        self._arrivals.append(now)
        return web.json_response({"forecast": "Sunny, with a light wind."})
