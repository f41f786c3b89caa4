"""Runs the stand-in for Slack that the tests and the sandbox's page use.

    async with running_slack(Workspace()) as slack:
        # start the bot with SLACK_API_URL=slack.api_url,
        # SLACK_BOT_TOKEN=slack.workspace.bot_token and SLACK_SIGNING_SECRET=slack.signing_secret,
        # then set the address of the bot:
        slack.bot_url = "http://127.0.0.1:3000"
        delivery = await slack.command("U0OPERATOR", "C0GENERAL", "/testusers", "add welcome +1555")
        assert delivery.status == 200 and delivery.seconds < 0.1
        card = await slack.until(lambda: slack.workspace.messages("C0APPROVALS")[-1])
        await slack.click("U0APPROVER", card, "Approve")       # by its label or its action_id
        await slack.until(lambda: "applied" in card.all_text)  # edits change this object

To check the state, use these members of `slack.workspace`: `messages(channel)`,
`thread(channel, ts)`, `dm(user)`, `ephemerals(user)`, `open_view(user)`, `calls` and
`calls_of(method)`. A message has `text`, `blocks`, `buttons`, `all_text` and `versions`. To add a
fault, call one of these methods of `slack.workspace.faults`: `ratelimit`, `error`, `status`,
`html`, `hang`, `drop`, `cut` or `hold`.

To wait for a modal, use `view = await slack.until(lambda: slack.workspace.open_view(user))`.
`await slack.suggest(user, view, "Flow", "wel")` returns the options.
`await slack.submit(user, view, {"Flow": "welcome", "Identities": "+1555"})` submits the modal. If
the bot returns errors, `view.errors` holds the errors by block_id; otherwise, the modal is closed.
`slack.workspace.close(view)` closes the modal without submitting it.

`await slack.open_home(user)` sends `app_home_opened`. `slack.workspace.homes[user]` is the view
that the bot published most recently. `slack.click` presses the view's buttons.

`await slack.direct_message(user, "orgs")` sends a direct message. With `again=2`, the message is
delivered two more times, as if Slack had received no response. To run a shortcut, use
`await slack.shortcut(user, id)` or `await slack.message_shortcut(user, message, id)`.
`await slack.event(user, {...})` sends any event. If the delivery fails, the event is delivered
again after the pauses in `slack.retry_pauses`.

To send a forged request, use `slack.raw(body, headers)`. `slack.signed_headers(body)` returns the
headers for a correctly signed request.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from sandbox.patience import LOOK_SECONDS, PATIENCE_SECONDS
from sandbox.people import Person
from sandbox.slack.api import WebApi
from sandbox.slack.delivery import (
    Deliverer,
    Delivery,
    show_command_reply,
    show_submission_reply,
)
from sandbox.slack.dump import dump
from sandbox.slack.filling import NotThereError, fill, find_element, find_input, missing, state_of
from sandbox.slack.messages import Json, Message, View, interactive
from sandbox.slack.payloads import Sender, action_of, escaped
from sandbox.slack.sockets import Sockets
from sandbox.slack.workspace import Workspace

SIGNING_SECRET = "sandbox-signing-secret"
Found = TypeVar("Found")


class RunningSlack:
    """Lets tests and the sandbox's page act as people in a workspace."""

    def __init__(
        self, workspace: Workspace, deliverer: Deliverer, sockets: Sockets, address: str
    ) -> None:
        self.workspace = workspace
        self.address = address
        self._sockets = sockets
        self.api_url = f"{address}/api/"
        self._deliverer = deliverer
        # Slack retries at once, after a minute and after five minutes.
        self.retry_pauses: tuple[float, ...] = (0, 60, 300)
        self._events = itertools.count(1)

    @property
    def bot_url(self) -> str | None:
        """The bot's address without a path, which tests can also set after the stand-in starts."""
        return self._deliverer.bot_url

    @bot_url.setter
    def bot_url(self, value: str | None) -> None:
        self._deliverer.bot_url = value

    def wait_for_acknowledgements(self, seconds: float) -> None:
        """Give the bot this many seconds to acknowledge a request, instead of the usual three."""
        self._deliverer.ack_seconds = seconds

    @property
    def signing_secret(self) -> str:
        """The secret used to sign requests to the bot."""
        return self._deliverer.signing_secret

    @property
    def sockets(self) -> int:
        """The number of Socket Mode connections that the bot has open."""
        return self._sockets.count

    def signed_headers(self, body: str) -> dict[str, str]:
        """Return the headers for a correctly signed request that has this body."""
        return self._deliverer.headers(body)

    async def raw(self, body: str, headers: dict[str, str]) -> Delivery:
        """Send a POST request with any body and headers to the bot's `/slack/events` endpoint."""
        return await self._deliverer.raw(body, headers)

    async def command(
        self, user: str, channel: str, command: str, text: str = "", *, as_typed: bool = True
    ) -> Delivery:
        """Simulate a person typing a slash command.

        Args:
            user: The person's ID.
            channel: The ID of a channel or of the person's direct messages with the bot (`D…`).
            command: The command, including its slash.
            text: The text after the command, in which mentions are written as `@handle`.
            as_typed: If False, the text is sent unchanged even if `should_escape` is set.
        """
        self._direct(channel)
        key = self.workspace.new_response_url(channel, user)
        if as_typed and self.workspace.should_escape:
            text = escaped(self.workspace, text)
        fields = self._sender(user).command(channel, command, text, self._response_url(key))
        delivery = await self._deliverer.command(fields)
        error = show_command_reply(self.workspace, fields, delivery, key)
        return Delivery(delivery.status, delivery.body, delivery.seconds, error)

    async def click(
        self,
        user: str,
        place: Message | View,
        name: str,
        value: Any = None,
        *,
        block_id: str | None = None,
    ) -> Delivery:
        """Simulate a person pressing a button or choosing a value in a menu.

        The earlier buttons of an edited message can still be pressed, because a person's screen may
        not be up to date.

        Args:
            user: The person's ID.
            place: The message, modal or Home tab.
            name: The label or action_id of the element, or the label of its input.
            value: The option or date to choose, if the element is not a button.
            block_id: The ID of the element's block, if several elements have this name.

        Raises:
            NotThereError: There is no element with this name.
        """
        block, element = found_in(place, name, block_id)
        state = {} if element["type"] == "button" else state_of(element, value)
        if state and isinstance(place, View):
            place.values.setdefault(str(block["block_id"]), {})[element["action_id"]] = state
        action = action_of(block, element, state, self.workspace.next_ts())
        if isinstance(place, View):
            return await self._deliverer.interaction(self._sender(user).view_action(place, action))
        key = self.workspace.new_response_url(place.channel, user, place)
        typed = {str(block.get("block_id")): {element["action_id"]: state}} if state else {}
        payload = self._sender(user).action(place, action, self._response_url(key), typed)
        return await self._deliverer.interaction(payload)

    async def suggest(self, user: str, view: View, name: str, typed: str) -> list[Json]:
        """Enter text in a type-ahead menu, and return the options that the bot suggests."""
        block, element = found_in(view, name)
        payload = self._sender(user).suggestion(view, block, element, typed)
        delivery = await self._deliverer.interaction(payload)
        reply = delivery.json if isinstance(delivery.json, dict) else {}
        return list(reply.get("options") or [])

    async def submit(self, user: str, view: View, values: dict[str, Any] | None = None) -> Delivery:
        """Simulate a person filling in a modal and submitting it.

        Errors from the bot are stored in `view.errors`. In a type-ahead menu, the bot suggests
        options for the text, and the matching option is chosen. In other menus, an option can be
        chosen by either its text or its value.

        Args:
            user: The person's ID.
            view: The modal.
            values: A dict that maps an input's label or block_id to the value to enter.

        Raises:
            NotThereError: An input or option does not exist, or Slack's client would not submit the
                modal, for example because a required input is empty.
        """
        for name, value in (values or {}).items():
            fill(view, name, await self._suggested(user, view, name, value))
        lacking = missing(view)
        if lacking:
            raise NotThereError(f"Slack does not send this modal yet: {lacking}")
        return await self.send(user, view)

    async def send(self, user: str, view: View) -> Delivery:
        """Submit a modal with its current values."""
        delivery = await self._deliverer.interaction(self._sender(user).submission(view))
        show_submission_reply(self.workspace, view, delivery)
        return delivery

    async def open_home(self, user: str) -> Delivery:
        """Simulate a person opening the bot's Home tab."""
        channel = self.workspace.direct(user)
        return await self.event(user, self._sender(user).home_opened(channel.id))

    async def direct_message(self, user: str, text: str, *, again: int = 0) -> Delivery:
        """Simulate a person sending a direct message to the bot.

        `again` is the number of times that Slack repeats a successful delivery.
        """
        message = self.say(user, self.workspace.direct(user).id, text)
        event = self._sender(user).direct_message(message)
        return await self.event(user, event, again=again)

    async def event(self, user: str, event: Json, *, again: int = 0) -> Delivery:
        """Deliver an event that a person caused. If the delivery fails, retry it as Slack does."""
        event_id = f"Ev{next(self._events):08d}"
        payload = self._sender(user).event(event, event_id)
        delivery = await self._deliverer.event(payload)
        for number, pause in enumerate(self.retry_pauses, start=1):
            if not delivery.error and number > again:
                break
            await asyncio.sleep(pause if delivery.error else 0)
            reason = "http_timeout" if not delivery.status else "http_error"
            delivery = await self._deliverer.event(payload, number, reason)
        return delivery

    async def shortcut(self, user: str, callback_id: str) -> Delivery:
        """Simulate a person running a global shortcut."""
        return await self._deliverer.interaction(self._sender(user).shortcut(callback_id))

    async def message_shortcut(self, user: str, message: Message, callback_id: str) -> Delivery:
        """Simulate a person running a message shortcut."""
        key = self.workspace.new_response_url(message.channel, user)
        url = self._response_url(key)
        payload = self._sender(user).message_action(callback_id, message, url)
        return await self._deliverer.interaction(payload)

    def say(self, user: str, channel: str, text: str, thread_ts: str | None = None) -> Message:
        """Simulate a person writing a message."""
        self._direct(channel)
        words = escaped(self.workspace, text)
        message = Message(channel, self.workspace.next_ts(), user, words, thread_ts=thread_ts)
        return self.workspace.post(message)

    async def until(
        self,
        predicate: Callable[[], Found],
        timeout: float = PATIENCE_SECONDS,  # noqa: ASYNC109
    ) -> Found:
        """Wait until `predicate()` returns a true value, and return that value.

        If the predicate raises an IndexError or KeyError, the wait continues. The predicate is
        checked after every message, edit, modal and Web API call. The predicate is also checked ten
        times a second, because events outside Slack can change its result.

        Raises:
            AssertionError: The predicate did not become true in time. The error message shows the
                state of the workspace.
        """
        try:
            async with asyncio.timeout(timeout):
                while not (found := attempt(predicate)):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_SECONDS):
                            await self.workspace.change()
                return found
        except TimeoutError:
            raise AssertionError(
                f"not within {timeout} s; there is:\n{dump(self.workspace)}"
            ) from None

    def _sender(self, user: str) -> Sender:
        person = self.workspace.people.get(user) or Person(user, user.lower(), user, "unknown")
        return Sender(self.workspace, person)

    def _response_url(self, key: str) -> str:
        return f"{self.address}/response/{key}"

    def _direct(self, channel: str) -> None:
        for person in self.workspace.people:
            if channel == "D" + person[1:]:
                self.workspace.direct(person)

    async def _suggested(self, user: str, view: View, name: str, value: Any) -> Any:
        _, element = find_input(view, name)
        if element["type"] != "external_select" or not isinstance(value, str):
            return value
        offered = await self.suggest(user, view, name, value)
        exact = [o for o in offered if value in {o["text"]["text"], o["value"]}]
        if len(exact or offered) != 1:
            names = [option["text"]["text"] for option in offered]
            raise NotThereError(f"{value!r} in {name!r} offers {names}")
        return (exact or offered)[0]


def attempt(predicate: Callable[[], Found]) -> Found | None:
    """Return the predicate's value, or None if the predicate raises an IndexError or KeyError."""
    try:
        return predicate()
    except (IndexError, KeyError):
        return None


def found_in(place: Message | View, name: str, block_id: str | None = None) -> tuple[Json, Json]:
    """Find an element in a modal, or in the current version or an earlier version of a message.

    Raises:
        NotThereError: There is no element with this name.
    """
    shown = [place.elements]
    if isinstance(place, Message):
        shown += [list(interactive(blocks)) for _, blocks in reversed(place.versions)]
    for elements in shown:
        found = find_element(elements, name, block_id)
        if found:
            return found
    raise NotThereError(
        f"nothing called {name!r} in:\n{place.all_text}\nbut {[e for _, e in place.elements]}"
    )


@asynccontextmanager
async def running_slack(
    workspace: Workspace | None = None,
    *,
    bot_url: str | None = None,
    signing_secret: str = SIGNING_SECRET,
    host: str = "127.0.0.1",
    port: int = 0,
    add_routes: Callable[[web.Application], None] | None = None,
) -> AsyncIterator[RunningSlack]:
    """Run the stand-in until the `with` block ends.

    Args:
        workspace: The workspace, or None for a new workspace with the default people.
        bot_url: The bot's address, which can also be set later.
        signing_secret: The secret used to sign requests to the bot.
        host: The address to listen on, such as `127.0.0.1` or `0.0.0.0`.
        port: The port to listen on, or 0 for any free port.
        add_routes: A function that adds more routes to the application.
    """
    workspace = workspace or Workspace()
    sockets = Sockets(workspace.changed)
    api = WebApi(workspace, sockets)
    app = make_slack_app(api, sockets)
    if add_routes:
        add_routes(app)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession() as session:
            deliverer = Deliverer(session, signing_secret, sockets.send)
            deliverer.bot_url = bot_url
            yield RunningSlack(workspace, deliverer, sockets, address)
    finally:
        api.close()
        await sockets.close()
        await runner.cleanup()


@web.middleware
async def not_from_other_sites(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse requests that come from other sites' pages, even if they have no Origin header."""
    if request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
        raise web.HTTPForbidden(text="Only programs and the sandbox's own page may call.")
    return await handler(request)


def make_slack_app(api: WebApi, sockets: Sockets) -> web.Application:
    """Return a web application that has all the endpoints that the bot calls."""
    app = web.Application(client_max_size=4 * 2**20, middlewares=[not_from_other_sites])
    app.router.add_route("*", "/api/{method}", api.handle)
    app.router.add_post("/response/{key}", api.handle_response)
    app.router.add_get("/socket", sockets.handle)
    return app
