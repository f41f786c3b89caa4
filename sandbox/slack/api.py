"""Serves Slack's Web API over HTTP, checks tokens, applies faults, and records every call."""

import asyncio
import json
from collections.abc import Callable
from functools import partial

from aiohttp import web

from sandbox.slack import chat, directory, modals
from sandbox.slack.delivery import as_json, post_reply
from sandbox.slack.faults import Fault
from sandbox.slack.messages import Json
from sandbox.slack.refusals import Refusal
from sandbox.slack.sockets import Sockets
from sandbox.slack.workspace import Call, Workspace

Method = Callable[[Workspace, Json], Json]

METHODS: dict[str, tuple[Method, str]] = {
    "auth.test": (directory.auth_test, ""),
    "chat.getPermalink": (chat.permalink, ""),
    "chat.postMessage": (chat.post_message, "chat:write"),
    "chat.update": (chat.update, "chat:write"),
    "conversations.info": (directory.conversations_info, ""),
    "conversations.list": (directory.conversations_list, ""),
    "usergroups.list": (directory.usergroups_list, "usergroups:read"),
    "usergroups.users.list": (directory.usergroup_users, "usergroups:read"),
    "users.info": (directory.users_info, "users:read"),
    "users.list": (directory.users_list, "users:read"),
    "views.open": (modals.views_open, ""),
    "views.publish": (modals.views_publish, ""),
    "views.update": (modals.views_update, ""),
}
OVER = {"expired_url", "used_url"}
PARSED = ("blocks", "view", "attachments", "metadata")


class WebApi:
    """Handles requests to `/api/<method>` and `/response/<secret>`, and records every call.

    Args:
        workspace: The workspace that the API calls read and change.
        sockets: The Socket Mode connections, for the method `apps.connections.open`.
    """

    def __init__(self, workspace: Workspace, sockets: Sockets) -> None:
        self._workspace = workspace
        self._sockets = sockets
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Cut the connections of hanging calls, and let held calls continue."""
        self._workspace.faults.clear()
        self._closing.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a Web API call."""
        method = request.match_info["method"]
        args, token = await read_args(request)
        run = partial(self._run, method, args, token, request.host)
        scopes = {"X-OAuth-Scopes": ",".join(self._workspace.scopes)}
        return await self._answered(request, method, args, run, scopes)

    async def handle_response(self, request: web.Request) -> web.StreamResponse:
        """Handle a POST request to a response_url, and record it as a `response_url` call."""
        reply = as_json(await request.text())
        args = reply if isinstance(reply, dict) else {}
        run = partial(self._post, request.match_info["key"], args)
        return await self._answered(request, "response_url", args, run, {})

    async def _answered(
        self,
        request: web.Request,
        method: str,
        args: Json,
        run: Callable[[], tuple[int, Json]],
        headers: dict[str, str],
    ) -> web.StreamResponse:
        fault = self._workspace.faults.take(method) or Fault(kind="none")
        if fault.kind in {"hang", "drop"}:
            self._record(method, args, None, None)
            await self._closing.wait() if fault.kind == "hang" else None
            return cut_off(request)
        if fault.hold and not fault.hold.after:
            await fault.hold.pass_through()
        if fault.kind == "answer" and fault.body is not None:
            self._record(method, args, fault.status, None)
            return web.Response(status=fault.status, text=fault.body, content_type="text/html")
        if fault.kind == "answer":
            status, answer = fault.status, {"ok": False, "error": fault.error}
        else:
            status, answer = run()
        if fault.hold and fault.hold.after:
            await fault.hold.pass_through()
        if fault.kind == "cut":
            self._record(method, args, None, None)
            return cut_off(request)
        self._record(method, args, status, answer)
        return web.json_response(answer, status=status, headers={**headers, **fault.headers})

    def _run(self, method: str, args: Json, token: str | None, host: str) -> tuple[int, Json]:
        try:
            check_token(self._workspace, method, token)
            if method == "apps.connections.open":
                url = f"ws://{host}/socket?ticket={self._sockets.ticket()}"
                return 200, {"ok": True, "url": url}
            run, scope = METHODS.get(method, (unknown_method, ""))
            directory.need_scope(self._workspace, scope)
            return 200, {"ok": True, **run(self._workspace, parsed(args))}
        except Refusal as refusal:
            return 200, refusal.body()

    def _post(self, key: str, reply: Json) -> tuple[int, Json]:
        try:
            self._workspace.use_response_url(key)
            post_reply(self._workspace, key, reply)
        except Refusal as refusal:
            return 404 if refusal.error in OVER else 400, refusal.body()
        return 200, {"ok": True}

    def _record(self, method: str, args: Json, status: int | None, answer: Json | None) -> None:
        call = Call(method, args, self._workspace.now(), status, answer)
        self._workspace.calls.append(call)
        self._workspace.changed()


def unknown_method(_workspace: Workspace, _args: Json) -> Json:
    """Refuse a method that the stand-in does not support."""
    raise Refusal("unknown_method")


async def read_args(request: web.Request) -> tuple[Json, str | None]:
    """Return the arguments in a call's query and body, and the call's token."""
    args: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.text()
        args |= json.loads(body) if body else {}
    else:
        args |= {key: str(value) for key, value in (await request.post()).items()}
    inside = args.pop("token", None)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return args, token if scheme == "Bearer" else inside


def parsed(args: Json) -> Json:
    """Parse the arguments that contain JSON text, such as `blocks`, and return all arguments.

    Raises:
        Refusal: `invalid_blocks_format` or a similar error.
    """
    read = dict(args)
    for key in PARSED:
        if isinstance(read.get(key), str):
            try:
                read[key] = json.loads(read[key])
            except ValueError as broken:
                raise Refusal(f"invalid_{key}_format") from broken
    return read


def check_token(workspace: Workspace, method: str, token: str | None) -> None:
    """Check that a call has the right token.

    Socket Mode requires the app token, and all other methods require the bot token.

    Raises:
        Refusal: `not_authed`, `invalid_auth` or `not_allowed_token_type`.
    """
    if not token:
        raise Refusal("not_authed")
    if token not in {workspace.bot_token, workspace.app_token}:
        raise Refusal("invalid_auth")
    expected = workspace.app_token if method == "apps.connections.open" else workspace.bot_token
    if token != expected:
        raise Refusal("not_allowed_token_type")


def cut_off(request: web.Request) -> web.Response:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
