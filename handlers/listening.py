"""What all listeners do: acknowledge, check who may do this, and answer in a task.

The program keeps these tasks, and waits for them before it stops.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncAck

from bot.app import Gatehouse, SlackParts
from bot.commands import COMMANDS
from bot.errors import DatabaseUnavailable, GatehouseError, NotFound, Replayed, Unsent, UsageError
from bot.ops.current_delivery import delivery_id
from bot.permissions import ACTING, Permission, Person
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

Work = Callable[[Any, Body], Awaitable[Any]]
"""Gets the person (None if the listener needs no permission) and Slack's payload.

Returns the message to show, or None.
"""
Listener = Callable[..., Awaitable[Any]]
"""A listener of Bolt, which calls it with `ack` and `body`."""
Next = Callable[[], Awaitable[BoltResponse]]
"""The last argument of a Bolt middleware."""


@dataclass(frozen=True)
class Needs:
    """A listener's permission, and the place of its answer.

    Attributes:
        permission: None if the person isn't identified, because a job does that or nobody acted.
        place: Where the answer appears.
        pace: The limit that applies, "commands" or "clicks", or "" if none does.
        filled_form: Returns what opens a submitted form again after an error.
        is_counted: False if the job that answers a stored click counts it.
        is_redelivered: True if Slack delivers the request again unless it's acknowledged.
    """

    permission: Permission | None
    place: AnswerAt = AnswerAt.BELOW
    pace: str = "clicks"
    filled_form: Callable[[Body], Unsent] | None = None
    is_counted: bool = True
    is_redelivered: bool = False


# Each form of a command has a permission of its own, which `Commands` checks.
COMMAND = Needs(Permission.ASK_FOR_HELP, AnswerAt.NEW_MESSAGE, pace="commands")
EVENT = Needs(None, AnswerAt.NOWHERE, pace="", is_redelivered=True)
# A job identifies the person and answers the click, which is only stored before.
STORED_CLICK = Needs(None, is_counted=False)


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


class Listening:
    """Makes listeners. This is the one place that turns an error into its sentence.

    `needs` has the needs of each listener.
    """

    def __init__(self, bot: Gatehouse) -> None:
        self._bot = bot
        self.needs: dict[Listener, Needs] = {}

    def after_ack(self, work: Work, needs: Needs) -> Listener:
        """Return a listener that acknowledges at once, and answers afterwards."""

        async def listen(ack: AsyncAck, body: Body) -> BoltResponse:
            self._start(work, needs, body)
            return await ack()

        return self._needing(needs, listen)

    def before_ack(self, work: Work, needs: Needs, *, seconds: float = STORE_SECONDS) -> Listener:
        """Return a listener that waits for `work`, but at most this many seconds.

        If an event couldn't be stored, it responds with 503, so that Slack delivers it again.
        """

        async def listen(ack: AsyncAck, body: Body) -> BoltResponse:
            task = self._start(work, needs, body)
            await asyncio.wait({task}, timeout=seconds)
            if needs.is_redelivered and task.done() and task.result() != "ok":
                return BoltResponse(status=503)
            return await ack()

        return self._needing(needs, listen)

    def suggest(self, work: Work, needs: Needs) -> Listener:
        """Return a listener with a type-ahead's options, or [], as Slack shows no errors."""

        async def listen(ack: AsyncAck, body: Body) -> BoltResponse:
            options: list[dict[str, Any]] = []
            try:
                async with asyncio.timeout(SUGGEST_SECONDS):
                    options = await self._permitted(work, needs, body)
            except (GatehouseError, TimeoutError):
                log.info("options.none")
            except Exception:
                log.exception("options.broken")
            return await ack(options=options)

        return self._needing(needs, listen)

    def _needing(self, needs: Needs, listener: Listener) -> Listener:
        self.needs[listener] = needs
        return listener

    def _start(self, work: Work, needs: Needs, body: Body) -> asyncio.Task[str]:
        return self._bot.tasks.start(self.answer(work, needs, body), name_of(body))

    async def answer(
        self, work: Work, needs: Needs, body: Body, respond: Respond | None = None
    ) -> str:
        """Do the work and show its answer or error. Return an outcome such as `ok`."""
        name = name_of(body)
        is_below = payloads.hidden(payloads.part(body, "view"), "below")
        place = AnswerAt.BELOW if is_below else needs.place
        if respond is None:
            url = payloads.response_url(body)
            respond = partial(self._bot.slack.replies.say, url, to=payloads.user_id(body))
        started = self._bot.clock.monotonic()
        try:
            answering = self._answer(work, needs, body)
            outcome = await show(answering, place, respond, body)
        except Exception:
            log.exception("answer.not_shown", name=name)
            outcome = "broken"
        if outcome == "ok" and not needs.is_counted:
            return outcome
        seconds = round(self._bot.clock.monotonic() - started, 3)
        log.info("answered", name=name, outcome=outcome, seconds=seconds)
        self._bot.metrics.count_command(name, outcome)
        if payloads.is_from_home(body):
            with suppress(DatabaseUnavailable):
                await self._bot.home.open(payloads.user_id(body))
        return outcome

    async def _answer(self, work: Work, needs: Needs, body: Body) -> Answer:
        try:
            return Answer(await self._permitted(work, needs, body))
        except Replayed as error:
            return Answer(None, error.outcome)
        except GatehouseError as error:
            return Answer(_with_form(_sentence(error, body), needs, body), error.outcome)
        except Exception:
            reference = delivery_id()
            log.exception("answer.broken", name=name_of(body), reference=reference)
            return Answer(_with_form(replies.broken(reference), needs, body), "broken")

    async def _permitted(self, work: Work, needs: Needs, body: Body) -> Any:  # noqa: ANN401 - a message or options
        """Check the pace and the permission, and do the work."""
        slack = self._bot.slack
        user_id = payloads.user_id(body)
        if needs.pace:
            slack.pace.require(user_id, needs.pace)
        if needs.permission is None:
            return await work(None, body)
        # This can take a call to Slack.
        person = await slack.people.find(user_id, payloads.team_ids(body))
        await require(slack, person, needs.permission)
        return await work(person, body)


async def require(slack: SlackParts, person: Person, permission: Permission) -> None:
    """Check the permission and, if it is for lasting changes, that the request isn't a repeat.

    Raises:
        Refused: The person lacks the permission.
        Replayed: The Slack request has already been handled.
    """
    await slack.people.require(person, permission)
    if permission in ACTING and not await slack.received.take():
        raise Replayed


def name_of(body: Body) -> str:
    """Return the name in metrics and logs, such as `/orgs` or `orgs.page`."""
    names = (
        payloads.text(body, "command"),
        payloads.text(payloads.clicked(body), "action_id"),
        payloads.text(body, "callback_id"),
        payloads.text(payloads.part(body, "event"), "type"),
        payloads.text(payloads.part(body, "view"), "callback_id"),
    )
    # The rest of an action ID tells the buttons of a row apart.
    return ".".join(next(filter(None, names), "").split(".")[:2])


def _sentence(error: GatehouseError, body: Body) -> Message:
    name = payloads.text(body, "command")
    typed = payloads.text(body, "text")
    words = typed.split()
    command = next((item for item in COMMANDS if item.name == name), None)
    if words and command and not error.closest and isinstance(error, UsageError | NotFound):
        meant = command.meant(words)
        if meant:
            error.suggesting(words[0], {meant: ""})
    message = replies.sorry(error)
    if name.startswith("/"):
        message = replies.with_next_steps(message, error, f"{name} {typed}".strip())
    if error.unsent:
        message = replies.with_unsent(message, error.unsent, "Open the form")
    return message


def _with_form(message: Message, needs: Needs, body: Body) -> Message:
    """Add a button that opens the submitted form again, if the message is about a form."""
    if needs.filled_form is None:
        return message
    filled = needs.filled_form(payloads.part(body, "view"))
    return replies.with_unsent(message, filled, "Try again")
