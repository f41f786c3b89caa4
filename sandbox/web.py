"""The page: its files, what it shows (`/page/state`), and what people do on it.

The page asks for the whole state of one person's screen whenever `/page/events` says that something
changed; what they do comes back as a POST of JSON. Everything goes through `RunningSlack`, as in a
test.

The state's `home` is the Home tab of the bot as it was published last (in the form of a modal, None
before that). POST /page/home {"as"} opens it; its buttons are pressed with POST /page/press and its
id as `view_id`. POST /page/shortcut {"as", "callback_id"} runs a global shortcut, with "channel"
and "ts" that of a message; those that there are stand in /page/welcome as `shortcuts`. What is said
in the conversation with the bot is delivered to it.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web

from sandbox.bot_process import BotProcess, BotStoppedError
from sandbox.greedy import Greedy
from sandbox.manifest import Manifest
from sandbox.screen import find_place, screen, welcome
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import RunningServices
from sandbox.slack.delivery import Delivery, tell_as_slackbot
from sandbox.slack.filling import NotThereError, fill, missing
from sandbox.slack.messages import Json, Message, View
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
    """Serves the page; `connect` gives it what it shows."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._slack: RunningSlack
        self._services: RunningServices
        self._bot: BotProcess
        self._greedy: Greedy
        self._closing = False
        self._delivering: set[asyncio.Task[Delivery]] = set()

    def connect(
        self, slack: RunningSlack, services: RunningServices, bot: BotProcess, greedy: Greedy
    ) -> None:
        """Show these from now on."""
        self._slack, self._services, self._bot = slack, services, bot
        self._greedy = greedy

    def close(self) -> None:
        """End the connections over which browsers hear of changes."""
        self._closing = True
        for task in self._delivering:
            task.cancel()
        self._slack.workspace.changed()

    def add_routes(self, app: web.Application) -> None:
        """Add the page to the application of the stand-in Slack."""
        app.middlewares.append(only_this_machine)
        app.router.add_get("/", show_file)
        app.router.add_get("/page/files/{name}", show_file)
        app.router.add_get("/page/welcome", self._welcome)
        app.router.add_get("/page/state", self._state)
        app.router.add_get("/page/events", self._events)
        app.router.add_get("/page/services", self._show_services)
        acts: dict[str, Act] = {
            "block": self._block,
            "trouble": self._trouble,
            "list": self._edit_list,
            "slack": self._break_slack,
            "greedy": self._greedy_script,
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

    async def _welcome(self, _request: web.Request) -> web.Response:
        return web.json_response(welcome(self._slack.workspace, self._manifest))

    async def _state(self, request: web.Request) -> web.Response:
        user = request.query.get("as", "")
        if user not in self._slack.workspace.people:
            raise web.HTTPNotFound(text="There is no such person.")
        shown = screen(self._slack.workspace, user)
        return web.json_response({**shown, "bot": self._bot.state})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Tell a browser, as server-sent events, that there is something new to see."""
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
        services = self._services.state
        troubles = {fault.data_center: fault.kind for fault in services.faults.active()}
        centers = [
            {
                "data_center": suffix,
                "organizations": [
                    {
                        "organization_id": row.organization_id,
                        "name": row.name,
                        "code": block.code if block else None,
                    }
                    for row in center.organizations
                    if row.is_org_active
                    for block in [services.limits.current((suffix, row.organization_id)).block]
                ],
                "trouble": troubles.get(suffix),
            }
            for suffix, center in services.data_centers.items()
        ]
        return web.json_response(
            {
                "data_centers": centers,
                "flows": [asdict(flow) for flow in services.flows.values()],
                "calls": [asdict(call) for call in services.calls[-14:]],
                "greedy": {way: vars(run) for way, run in self._greedy.runs.items()},
            }
        )

    async def _block(self, body: Json) -> Json:
        """Block an organization with a code, or end its block without."""
        at, limits = (body["data_center"], body["organization_id"]), self._services.state.limits
        if body["code"] is None:
            limits.lift(at)
        else:
            limits.block(at, body["code"])
        return {}

    async def _trouble(self, body: Json) -> Json:
        """Have a data center fail in one way, or work again."""
        faults, center = self._services.state.faults, body["data_center"]
        faults.lift(center)
        if body["kind"]:
            kind = FaultKind(body["kind"])
            faults.add(Fault(kind, "inventory", center, status=503, seconds=4))
        return {}

    async def _edit_list(self, body: Json) -> Json:
        self._services.state.edit_flow(body["sid"], body["identities"])
        return {}

    async def _break_slack(self, body: Json) -> Json:
        """Have the bot's next post fail."""
        faults, method = self._slack.workspace.faults, "chat.postMessage"
        match body["kind"]:
            case "ratelimit":
                faults.ratelimit(method, retry_after=2)
            case "status":
                faults.status(method, 500, times=2)
            case "cut":
                faults.cut(method)
        return {}

    async def _greedy_script(self, body: Json) -> Json:
        if "organization_id" in body:
            await self._greedy.start(**body)
        else:
            await self._greedy.stop(body["through"])
        return {}

    async def _say(self, body: Json) -> Json:
        user, channel, text = body["as"], body["channel"], body["text"].strip()
        if not text.startswith("/") and self._slack.workspace.channels[channel].is_direct:
            # Not waited for: a bot that has stopped is tried again for minutes.
            self._start(self._slack.direct_message(user, text))
            return {}
        if not text.startswith("/"):
            self._slack.say(user, channel, text, body.get("thread_ts"))
            return {}
        command, _, rest = text.partition(" ")
        names = [known.name for known in self._manifest.commands]
        if command not in names:
            tell_as_slackbot(self._slack.workspace, user, channel, f"{command} is not a command.")
            return {}
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
        if not body.get("ts"):
            return outcome(await self._slack.shortcut(user, callback_id))
        message = find_place(self._slack.workspace, body)
        if not isinstance(message, Message):
            raise NotThereError("That is not a message.")
        return outcome(await self._slack.message_shortcut(user, message, callback_id))

    async def _press(self, body: Json) -> Json:
        place = find_place(self._slack.workspace, body)
        if isinstance(place, View):
            fill_all(place, body.get("values") or {})
        where = {"block_id": body["block_id"], "value": body.get("value")}
        return outcome(await self._slack.click(body["as"], place, body["action_id"], **where))

    async def _suggest(self, body: Json) -> Json:
        typed = body["action_id"], body["typed"]
        return {"options": await self._slack.suggest(body["as"], self._modal(body), *typed)}

    async def _submit(self, body: Json) -> Json:
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
        """Kill the bot, as a crash would, and start it again."""
        await self._bot.kill()
        try:
            await self._bot.start()
        except BotStoppedError as error:
            return {"error": str(error)}
        return {}


def doing(act: Act) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler of something that a person did; what is gone by now is a 409 with a sentence."""

    async def handle(request: web.Request) -> web.Response:
        try:
            return web.json_response(await act(await request.json()))
        except NotThereError as gone:
            return web.json_response({"error": str(gone).splitlines()[0]}, status=409)

    return handle


def outcome(delivery: Any) -> Json:
    """How a delivery went, for the page."""
    return {"error": delivery.error, "seconds": round(delivery.seconds, 3)}


def fill_all(view: View, values: Json) -> None:
    """Put everything that stands in a modal on the screen into the modal."""
    for block_id, value in values.items():
        fill(view, block_id, value)


async def show_file(request: web.Request) -> web.StreamResponse:
    """One of the page's own files."""
    path = FILES / request.match_info.get("name", "index.html")
    if path.parent != FILES or not path.is_file():
        raise web.HTTPNotFound(text="There is no such file.")
    return web.FileResponse(path, headers=HEADERS)


@web.middleware
async def only_this_machine(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer only under a loopback name, and only pages of our own: no other site can act here."""
    host = request.url.host or ""
    origin = request.headers.get("Origin")
    if not is_loopback(host) or (origin and origin != f"http://{request.host}"):
        raise web.HTTPForbidden(text="Only this machine sees the sandbox.")
    return await handler(request)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
