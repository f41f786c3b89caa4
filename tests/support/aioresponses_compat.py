"""Lets aioresponses 0.7.9 build responses of aiohttp ≥ 3.14, which wants a `stream_writer`.

Delete this module, and use aioresponses itself, when a release of it mends that.
"""

from typing import Any

from aiohttp import ClientResponse, StreamReader, hdrs
from aioresponses import aioresponses


class _NothingSent:
    """Stands for the writer of a request that was never sent."""

    output_size = 0


class CompatibleResponse(ClientResponse):
    """A response that needs no connection: `aioresponses().get(url, response_class=this)`."""

    content: StreamReader

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, stream_writer=_NothingSent(), **kwargs)


class FakeServices(aioresponses):
    """aioresponses, with the response class filled in."""

    def add(self, url: Any, method: str = hdrs.METH_GET, **kwargs: Any) -> None:
        kwargs.setdefault("response_class", CompatibleResponse)
        super().add(url, method, **kwargs)
