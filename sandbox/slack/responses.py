"""response_url: what the bot posts there, and the two ways in which Slack says it is over."""

import asyncio

from aiohttp import web

from sandbox.slack.api import as_json, cut_off
from sandbox.slack.delivery import post_reply
from sandbox.slack.messages import Json
from sandbox.slack.refusals import Refusal
from sandbox.slack.workspace import Call, Workspace

REFUSED_STATUS = {"expired_url": 404, "used_url": 404}


class ResponseUrls:
    """Answers `/response/<secret>`; every post is recorded as a call of `response_url`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Let every post go that hangs."""
        self._closing.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One post."""
        reply = as_json(await request.text())
        fault = self._workspace.faults.take("response_url")
        if fault and fault.kind in {"hang", "drop"}:
            self._record(reply, None)
            await self._closing.wait() if fault.kind == "hang" else None
            return cut_off(request)
        if fault and fault.hold and not fault.hold.after:
            await fault.hold.pass_through()
        if fault and fault.kind == "answer":
            self._record(reply, fault.status)
            body = fault.body or fault.error or ""
            return web.Response(status=fault.status, text=body, headers=fault.headers)
        status, error = self._post(request.match_info["key"], reply)
        if fault and fault.hold and fault.hold.after:
            await fault.hold.pass_through()
        if fault and fault.kind == "cut":
            self._record(reply, None)
            return cut_off(request)
        answer = {"ok": error is None} | ({"error": error} if error else {})
        self._record(reply, status, answer)
        if error:
            return web.json_response(answer, status=status)
        return web.Response(text="ok")

    def _post(self, key: str, reply: object) -> tuple[int, str | None]:
        try:
            self._workspace.use_response_url(key)
            post_reply(self._workspace, key, reply if isinstance(reply, dict) else {})
        except Refusal as refusal:
            return REFUSED_STATUS.get(refusal.error, 400), refusal.error
        return 200, None

    def _record(self, reply: object, status: int | None, answer: Json | None = None) -> None:
        args = reply if isinstance(reply, dict) else {}
        call = Call("response_url", args, self._workspace.now(), status, answer)
        self._workspace.calls.append(call)
        self._workspace.changed()
