"""`/_control`: act in this Slack, look at it, and make it fail, from another process.

GET  calls?last=50  the last Web API calls, newest last
GET  homes/<user>   {"view": what the bot published last in this person's Home tab, or null}
POST homes          {"user"}: the person opens the Home tab of the bot (`app_home_opened`)
POST messages       {"user", "text", "again"?: 2}: the person writes to the bot (`message.im`);
                    this is delivered two more times
POST shortcuts      {"user", "callback_id", "channel"?, "ts"?}: the person runs a global shortcut,
                    or, with a message's channel and ts, a shortcut of that message
POST presses        {"user", "view_id" or "channel" and "ts", "action_id", "block_id"?, "value"?}:
                    the person presses a button, in a Home tab too (its id is in `homes/<user>`)
POST faults         {"method", "kind", "times"?, "retry_after"?, "error"?, "status"?}
POST faults/lift    {}: everything works again, and what is held goes on

`kind` is one of `ratelimit`, `error`, `status`, `html`, `hang`, `drop`, `cut`; see
`sandbox.slack.faults.Faults`. `times` is 1 when left out, null for every call until lifted.
What a person does is answered with {"status", "error", "seconds"} of the delivery to the bot.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from sandbox.slack.delivery import Delivery
from sandbox.slack.faults import Faults
from sandbox.slack.filling import NotThereError
from sandbox.slack.messages import Json, Message, View
from sandbox.slack.workspace import Workspace

Options = dict[str, Any]


class People(Protocol):
    """What people do: a `RunningSlack`."""

    workspace: Workspace

    async def open_home(self, user: str) -> Delivery: ...  # noqa: D102
    async def direct_message(self, user: str, text: str, *, again: int = 0) -> Delivery: ...  # noqa: D102
    async def shortcut(self, user: str, callback_id: str) -> Delivery: ...  # noqa: D102
    async def message_shortcut(self, user: str, message: Message, callback_id: str) -> Delivery: ...  # noqa: D102
    async def click(  # noqa: D102
        self,
        user: str,
        place: Message | View,
        name: str,
        value: Any = None,
        *,
        block_id: str | None,
    ) -> Delivery: ...


Act = Callable[[People, Json], Awaitable[Delivery]]


async def open_home(people: People, body: Json) -> Delivery:
    """`homes`."""
    return await people.open_home(body["user"])


async def write(people: People, body: Json) -> Delivery:
    """`messages`."""
    return await people.direct_message(body["user"], body["text"], again=body.get("again", 0))


async def run_shortcut(people: People, body: Json) -> Delivery:
    """`shortcuts`."""
    user, callback_id = body["user"], body["callback_id"]
    if not body.get("ts"):
        return await people.shortcut(user, callback_id)
    return await people.message_shortcut(user, message_at(people.workspace, body), callback_id)


async def press(people: People, body: Json) -> Delivery:
    """`presses`."""
    view = people.workspace.views.get(str(body.get("view_id")))
    place = view or message_at(people.workspace, body)
    name, value = body["action_id"], body.get("value")
    return await people.click(body["user"], place, name, value, block_id=body.get("block_id"))


def message_at(workspace: Workspace, body: Json) -> Message:
    """The message that somebody names by its channel and ts.

    Raises:
        KeyError: there is none.
    """
    for message in workspace.all_messages:
        if (message.channel, message.ts) == (body["channel"], body["ts"]):
            return message
    raise KeyError("no such message")


ACTS: dict[str, Act] = {
    "homes": open_home,
    "messages": write,
    "shortcuts": run_shortcut,
    "presses": press,
}


def add_people(app: web.Application, people: Callable[[], People]) -> None:
    """Add what people see and do; `people` gives the running stand-in."""

    async def home(request: web.Request) -> web.Response:
        workspace = people().workspace
        view = workspace.homes.get(request.match_info["user"])
        shown = view.as_slack(workspace.app_id, workspace.bot_id) if view else None
        return web.json_response({"view": shown})

    def doing(act: Act) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                delivery = await act(people(), await request.json())
            except (KeyError, NotThereError) as error:
                raise web.HTTPBadRequest(text=f"{type(error).__name__}: {error}") from error
            about = {name: getattr(delivery, name) for name in ("status", "error", "seconds")}
            return web.json_response(about)

        return handle

    app.router.add_get("/_control/homes/{user}", home)
    for name, act in ACTS.items():
        app.router.add_post(f"/_control/{name}", doing(act))


def add_control(app: web.Application, workspace: Workspace) -> None:
    """Add what goes wrong, and the record of calls."""

    async def calls(request: web.Request) -> web.Response:
        last = int(request.query.get("last", "50"))
        shown = [
            {"method": call.method, "at": call.at, "status": call.status, "answer": call.answer}
            for call in workspace.calls[-last:]
        ]
        return web.json_response({"calls": shown})

    async def disturb(request: web.Request) -> web.Response:
        try:
            set_fault(workspace.faults, await request.json())
        except (KeyError, TypeError, ValueError) as error:
            raise web.HTTPBadRequest(text=f"{type(error).__name__}: {error}") from error
        return web.json_response({})

    async def lift(_request: web.Request) -> web.Response:
        workspace.faults.clear()
        return web.json_response({})

    app.router.add_get("/_control/calls", calls)
    app.router.add_post("/_control/faults", disturb)
    app.router.add_post("/_control/faults/lift", lift)


def set_fault(faults: Faults, body: Json) -> None:
    """Set one fault.

    Raises:
        KeyError: a field is missing, or there is no such kind.
        ValueError: a number is not one.
    """
    times: int | None = body.get("times", 1)
    kinds: dict[str, Callable[..., None]] = {
        "ratelimit": faults.ratelimit,
        "error": faults.error,
        "status": faults.status,
        "html": faults.html,
        "hang": faults.hang,
        "drop": faults.drop,
        "cut": faults.cut,
    }
    more: Options = {}
    if body["kind"] == "ratelimit":
        more["retry_after"] = int(body.get("retry_after", 1))
    elif body["kind"] == "error":
        more["name"] = str(body["error"])
    elif body["kind"] == "status":
        more["status"] = int(body.get("status", 500))
    kinds[body["kind"]](body["method"], times=times, **more)
