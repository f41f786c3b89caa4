"""Serves the sandbox's page, and carries out the actions that people take on the page.

Whenever `/page/events` reports a change, the page requests the whole state of one person's screen.
For each action, the page sends a POST request with a JSON body. `RunningSlack` carries out the
actions, as it does in tests.

In the screen's state, `home` is the Home tab that the bot most recently published. `home` has the
same format as a modal, or is null if the bot has not published a Home tab yet.
`POST /page/home {"as"}` opens the Home tab. `POST /page/press` presses a button. The button is on
the Home tab if `view_id` is the Home tab's ID. `POST /page/shortcut {"as", "callback_id"}` runs a
global shortcut, and `/page/welcome` lists them. `POST /page/say` sends a message, or runs a command
if the text starts with a slash. A direct message is also delivered to the bot.
`POST /page/panel/<name>` presses a button in the services panel (`sandbox/panel.py`).
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from sandbox.bot_process import BotProcess, BotStoppedError
from sandbox.manifest import Manifest
from sandbox.panel import Panel
from sandbox.screen import find_place, screen, welcome
from sandbox.slack.delivery import Delivery, tell_as_slackbot
from sandbox.slack.filling import NotThereError, fill, missing
from sandbox.slack.messages import Json, View
from sandbox.slack.server import RunningSlack

FILES = Path(__file__).resolve().parent / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
TOGETHER_SECONDS = 0.03
ALIVE_SECONDS = 15

Act = Callable[[Json], Awaitable[Json]]


class Page:
    """Serves the page. `connect` must be called before the first request."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._slack: RunningSlack
        self._bot: BotProcess
        self._panel: Panel
        self._closing = False
        self._delivering: set[asyncio.Task[Delivery]] = set()

    def connect(self, slack: RunningSlack, bot: BotProcess, panel: Panel) -> None:
        """Connect the page to the stand-in Slack, the bot and the services panel."""
        self._slack = slack
        self._bot = bot
        self._panel = panel

    def close(self) -> None:
        """Close the connections that notify browsers of changes."""
        self._closing = True
        for task in self._delivering:
            task.cancel()
        self._slack.workspace.changed()

    def add_routes(self, app: web.Application) -> None:
        """Add the page's routes to the stand-in Slack's web application."""
        app.middlewares.append(only_this_machine)
        app.router.add_get("/", show_file)
        app.router.add_get("/page/files/{name}", show_file)
        app.router.add_get("/page/welcome", self._welcome)
        app.router.add_get("/page/state", self._state)
        app.router.add_get("/page/events", self._events)
        app.router.add_get("/page/services", self._show_services)
        acts: dict[str, Act] = {
            "say": self._say,
            "press": self._press,
            "suggest": self._suggest,
            "submit": self._submit,
            "close": self._close_view,
            "restart": self._restart,
            "home": self._home,
            "shortcut": self._shortcut,
        }
        for name, act in acts.items():
            app.router.add_post(f"/page/{name}", doing(act))
        app.router.add_post("/page/panel/{name}", self._press_in_panel)

    async def _welcome(self, _request: web.Request) -> web.Response:
        return web.json_response(welcome(self._slack.workspace, self._manifest))

    async def _state(self, request: web.Request) -> web.Response:
        user = request.query.get("as", "")
        if user not in self._slack.workspace.people:
            raise web.HTTPNotFound(text="There is no such person.")
        shown = screen(self._slack.workspace, user)
        return web.json_response({**shown, "bot": self._bot.state})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Notify a browser of changes by sending server-sent events."""
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionResetError):  # the browser has gone
            await self._tell(response)
        return response

    async def _tell(self, response: web.StreamResponse) -> None:
        workspace, told = self._slack.workspace, -1
        while not self._closing:
            if workspace.version != told:
                told = workspace.version
                await response.write(f"data: {told}\n\n".encode())
                await asyncio.sleep(TOGETHER_SECONDS)
                continue
            try:
                async with asyncio.timeout(ALIVE_SECONDS):
                    await workspace.change()
            except TimeoutError:
                await response.write(b": still here\n\n")

    async def _show_services(self, _request: web.Request) -> web.Response:
        return web.json_response(self._panel.shown())

    async def _press_in_panel(self, request: web.Request) -> web.Response:
        act = self._panel.acts.get(request.match_info["name"])
        if act is None:
            raise web.HTTPNotFound(text="The panel has no such button.")
        return await doing(act)(request)

    async def _say(self, body: Json) -> Json:
        user, channel, text = body["as"], body["channel"], body["text"].strip()
        if text.startswith("/"):
            return await self._run_command(user, channel, text)
        if self._slack.workspace.channels[channel].is_direct:
            await self._bot.until_settled()
            # The page doesn't wait: Slack retries an event for minutes if the bot has stopped.
            self._start(self._slack.direct_message(user, text))
        else:
            self._slack.say(user, channel, text, body.get("thread_ts"))
        return {}

    async def _run_command(self, user: str, channel: str, text: str) -> Json:
        command, _, rest = text.partition(" ")
        names = [known.name for known in self._manifest.commands]
        if command not in names:
            tell_as_slackbot(self._slack.workspace, user, channel, f"{command} is not a command.")
            return {}
        await self._bot.until_settled()
        return outcome(await self._slack.command(user, channel, command, rest.strip()))

    def _start(self, delivering: Coroutine[Any, Any, Delivery]) -> None:
        task = asyncio.create_task(delivering)
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)

    async def _home(self, body: Json) -> Json:
        self._start(self._slack.open_home(body["as"]))
        return {}

    async def _shortcut(self, body: Json) -> Json:
        user, callback_id = body["as"], body["callback_id"]
        await self._bot.until_settled()
        return outcome(await self._slack.shortcut(user, callback_id))

    async def _press(self, body: Json) -> Json:
        await self._bot.until_settled()
        place = find_place(self._slack.workspace, body)
        if isinstance(place, View):
            fill_all(place, body.get("values") or {})
        where = {"block_id": body["block_id"], "value": body.get("value")}
        return outcome(await self._slack.click(body["as"], place, body["action_id"], **where))

    async def _suggest(self, body: Json) -> Json:
        await self._bot.until_settled()
        view = self._modal(body)
        found = await self._slack.suggest(body["as"], view, body["action_id"], body["typed"])
        return {"options": found}

    async def _submit(self, body: Json) -> Json:
        await self._bot.until_settled()
        view = self._modal(body)
        fill_all(view, body["values"])
        lacking = missing(view)
        if lacking:
            self._slack.workspace.fail(view, lacking)
            return {}
        return outcome(await self._slack.send(body["as"], view))

    async def _close_view(self, body: Json) -> Json:
        self._slack.workspace.close(self._modal(body))
        return {}

    def _modal(self, body: Json) -> View:
        view = find_place(self._slack.workspace, body)
        if not isinstance(view, View):
            raise NotThereError("that modal is closed")
        return view

    async def _restart(self, _wish: Json) -> Json:
        """Kill the bot, as if it had crashed, and start it again."""
        await self._bot.kill()
        try:
            await self._bot.start()
        except BotStoppedError as error:
            return {"error": str(error)}
        return {}


def doing(act: Act) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return a handler for an action.

    The handler responds with 409 if the target of the action no longer exists.
    """

    async def handle(request: web.Request) -> web.Response:
        try:
            return web.json_response(await act(await request.json()))
        except NotThereError as gone:
            return web.json_response({"error": str(gone).splitlines()[0]}, status=409)

    return handle


def outcome(delivery: Any) -> Json:
    """Return the result of a delivery in the form that the page needs."""
    return {"error": delivery.error, "seconds": round(delivery.seconds, 3)}


def fill_all(view: View, values: Json) -> None:
    """Fill in a view's inputs with the values that the person entered on the page."""
    for block_id, value in values.items():
        fill(view, block_id, value)


async def show_file(request: web.Request) -> web.StreamResponse:
    """Return one of the page's files."""
    path = FILES / request.match_info.get("name", "index.html")
    if path.parent != FILES or not path.is_file():
        raise web.HTTPNotFound(text="There is no such file.")
    return web.FileResponse(path, headers=HEADERS)


@web.middleware
async def only_this_machine(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse a request if it is not for a loopback host, or if it comes from another site."""
    host = request.url.host or ""
    origin = request.headers.get("Origin")
    if not is_loopback(host) or (origin and origin != f"http://{request.host}"):
        raise web.HTTPForbidden(text="Only this machine sees the sandbox.")
    return await handler(request)


def is_loopback(host: str) -> bool:
    """Return True if the host is `localhost` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
