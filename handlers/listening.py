"""The common parts of all listeners: the middleware, the runner of lazy listeners, and `ack`.

Bolt's own runner of lazy listeners doesn't keep its tasks, so they could be discarded while they
run, doesn't wait for them when the program stops, and only logs their errors.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncBoltRequest
from slack_bolt.kwargs_injection.async_utils import build_async_required_kwargs
from slack_bolt.lazy_listener.async_runner import AsyncLazyListenerRunner
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.response import BoltResponse
from slack_bolt.util.utils import get_arg_names_of_callable

from bot.app import Gatehouse, SlackParts
from bot.errors import GatehouseError, NotFound, Replayed, UsageError
from bot.ops.current_delivery import delivery_id
from bot.ops.logs import bolt_logger
from bot.permissions import ACTING, Permission, Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message
from handlers import payloads
from handlers.payloads import Body
from handlers.progress import Answer, AnswerAt, Respond, show

log = structlog.get_logger(__name__)

# Slack waits three seconds for an acknowledgement, or for a type-ahead's options. People who see a
# timeout click again, even though the first click might still be in progress.
STORE_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
# An event is acknowledged after this time even if it isn't stored yet, because many events can
# arrive at once.
EVENT_SECONDS = 0.05

# Bolt looks at a lazy listener's signature on every call, which takes longer than calling it.
argument_names = lru_cache(get_arg_names_of_callable)

Listener = Callable[..., Awaitable[Any]]
Next = Callable[[], Awaitable[BoltResponse]]
"""The last argument of a Bolt middleware."""


@dataclass(frozen=True)
class Needs(AsyncMiddleware):
    """A listener's permission and the place of its answer. Used as its middleware.

    Looking a person up can take a call to Slack. So `LazyRunner` does it after the acknowledgement,
    checks the pace and the permission, and sets `context["person"]`.

    Attributes:
        permission: None if the person isn't identified, because a job does that or nobody acted.
        place: Where the answer appears.
        pace: The limit that applies, "commands" or "clicks", or "" if none does.
        filled_form: Returns the value of a button that opens the form again after an error.
    """

    permission: Permission | None
    place: AnswerAt = AnswerAt.BELOW
    pace: str = "clicks"
    filled_form: Callable[[Body], str] | None = None

    async def async_process(
        self,
        *,
        req: AsyncBoltRequest,
        resp: BoltResponse,  # noqa: ARG002 - Bolt's signature
        next: Next,  # noqa: A002 - Bolt's signature
    ) -> BoltResponse:
        """Keep this for the runner."""
        req.context["needs"] = self
        return await next()


# Each form of a command has a permission of its own, which `Commands` checks.
COMMAND = Needs(Permission.ASK_FOR_HELP, AnswerAt.NEW_MESSAGE, pace="commands")
EVENT = Needs(None, AnswerAt.NOWHERE, pace="")
# A job identifies the person and answers the click, which is only stored before.
STORED_CLICK = Needs(None)


def form_check(check: Callable[[Body], Mapping[str, str]]) -> Listener:
    """Return a middleware that keeps a form open if it has errors.

    `check` gets the submitted view, and returns error messages by block ID.
    """

    async def keep_open(view: Body, ack: AsyncAck, next_: Next) -> BoltResponse:
        errors = check(view)
        if errors:
            return await ack(response_action="errors", errors=dict(errors))
        return await next_()

    return keep_open


async def acknowledge(ack: AsyncAck) -> None:
    """Acknowledge at once. A lazy listener answers later."""
    await ack()


class LazyRunner(AsyncLazyListenerRunner):
    """Runs lazy listeners as tasks that the program waits for before it stops.

    A listener returns the message to show, or None. This is the one place that turns an error into
    its sentence.
    """

    def __init__(self, bot: Gatehouse) -> None:
        self.logger = bolt_logger()
        self._bot = bot

    def start(self, function: Listener, request: AsyncBoltRequest) -> None:
        """Start a lazy listener. Bolt calls this right before it acknowledges the request."""
        self._bot.tasks.start(self.answer(function, request), function.__name__)

    def before_acknowledging(self, function: Listener, seconds: float = STORE_SECONDS) -> Listener:
        """Return an `ack` function that waits for `function`, but at most this many seconds.

        If an event couldn't be stored, it responds with 503, so that Slack delivers it again.
        """

        async def wait(ack: AsyncAck, request: AsyncBoltRequest) -> BoltResponse:
            task = self._bot.tasks.start(self.answer(function, request), function.__name__)
            await asyncio.wait({task}, timeout=seconds)
            is_lost = task.done() and task.result() != "ok"
            if is_lost and request.context["needs"] is EVENT:
                return BoltResponse(status=503)
            return await ack()

        return wait

    def suggest(self, function: Listener) -> Listener:
        """Return an `ack` function with a type-ahead's options, or [], as Slack shows no errors."""

        async def suggest(ack: AsyncAck, request: AsyncBoltRequest) -> None:
            options: list[dict[str, Any]] = []
            try:
                async with asyncio.timeout(SUGGEST_SECONDS):
                    options = await self._work(function, request)
            except (GatehouseError, TimeoutError):
                log.info("options.none")
            except Exception:
                log.exception("options.broken")
            await ack(options=options)

        return suggest

    async def answer(
        self, function: Listener, request: AsyncBoltRequest, respond: Respond | None = None
    ) -> str:
        """Answer a request without raising errors, and return an outcome such as `ok`."""
        body = request.body
        needs: Needs = request.context["needs"]
        name = _name_of(request)
        is_below = payloads.hidden(payloads.part(body, "view"), "below")
        place = AnswerAt.BELOW if is_below else needs.place
        if respond is None:
            url = payloads.response_url(body)
            respond = partial(self._bot.slack.replies.say, url, to=payloads.user_id(body))
        started = self._bot.clock.monotonic()
        try:
            work = self._answer(function, request)
            outcome = await show(work, place, respond, _action_of(body))
        except Exception:
            log.exception("answer.not_shown", name=name)
            outcome = "broken"
        if needs is STORED_CLICK and outcome == "ok":
            # The job that answers the click counts it.
            return outcome
        seconds = round(self._bot.clock.monotonic() - started, 3)
        log.info("answered", name=name, outcome=outcome, seconds=seconds)
        self._bot.metrics.count_command(name, outcome)
        return outcome

    async def _answer(self, function: Listener, request: AsyncBoltRequest) -> Answer:
        try:
            return Answer(await self._work(function, request))
        except Replayed as error:
            return Answer(None, error.outcome)
        except GatehouseError as error:
            return Answer(_sentence(error, request), error.outcome)
        except Exception:
            reference = delivery_id()
            log.exception("answer.broken", name=_name_of(request), reference=reference)
            return Answer(_with_form(replies.broken(reference), request), "broken")

    async def _work(self, function: Listener, request: AsyncBoltRequest) -> Any:  # noqa: ANN401 - a message or options
        needs: Needs = request.context["needs"]
        user_id = payloads.user_id(request.body)
        if needs.pace:
            self._bot.slack.pace.require(user_id, needs.pace)
        if needs.permission is not None:
            person = await self._bot.slack.people.find(user_id, payloads.team_ids(request.body))
            await require(self._bot.slack, person, needs.permission)
            request.context["person"] = person
        arguments = build_async_required_kwargs(
            logger=self.logger,
            required_arg_names=argument_names(function),
            request=request,
            response=None,
            this_func=function,
        )
        return await function(**arguments)


async def require(slack: SlackParts, person: Person, permission: Permission) -> None:
    """Check the permission and, if it is for lasting changes, that the request isn't a repeat.

    Raises:
        Refused: The person lacks the permission.
        Replayed: The Slack request has already been handled.
    """
    await slack.people.require(person, permission)
    if permission in ACTING and not await slack.received.take():
        raise Replayed


def _action_of(body: Body) -> Body:
    actions = body.get("actions")
    return actions[0] if actions else {}


def _name_of(request: AsyncBoltRequest) -> str:
    """Return the name in metrics and logs, such as `/orgs` or `orgs.page`."""
    body = request.body
    names = (
        payloads.text(body, "command"),
        payloads.text(_action_of(body), "action_id"),
        payloads.text(body, "callback_id"),
        payloads.text(payloads.part(body, "event"), "type"),
        payloads.text(payloads.part(body, "view"), "callback_id"),
    )
    # The rest of an action ID tells the buttons of a row apart.
    return ".".join(next(filter(None, names), "").split(".")[:2])


def _sentence(error: GatehouseError, request: AsyncBoltRequest) -> Message:
    name = payloads.text(request.body, "command")
    typed = payloads.text(request.body, "text")
    first = next(iter(typed.split()), "")
    if first and not error.closest and isinstance(error, UsageError | NotFound):
        meant = help_ui.meant_subcommand(name, first)
        if meant:
            error.suggesting(first, {meant: ""})
    message = replies.sorry(error)
    if name.startswith("/"):
        message = replies.with_next_steps(message, error, f"{name} {typed}".strip())
    return _with_form(message, request)


def _with_form(message: Message, request: AsyncBoltRequest) -> Message:
    """Add a button that opens the submitted form again, if the message is about a form."""
    needs: Needs = request.context["needs"]
    if needs.filled_form is None:
        return message
    return replies.with_form(message, needs.filled_form(payloads.part(request.body, "view")))
