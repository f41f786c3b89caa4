"""The frame around every listener: acknowledge, find out who asks, answer whatever happens.

Bolt forgets an acknowledgement when its listener raises right after it, and does not wait for
listeners when the program stops. So a listener here only acknowledges and starts a task; the task
catches everything, says that it is working after half a second, and replaces that by the answer.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot.clock import Clock
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.metrics import Metrics
from bot.model.pace import CommandPace
from bot.permissions import Person
from bot.tasks import Tasks
from bot.ui import replies
from bot.ui.message import Message
from bot.ui.modals import hidden
from bot.workflows.people import People

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 0.5
Body = Mapping[str, Any]


class ReplyPort(Protocol):
    """Answers by response_url."""

    async def say(self, response_url: str, message: Message, *, replace: bool = False) -> bool:
        """Show the message to the person; return whether Slack took it."""
        ...


@dataclass(frozen=True)
class Click:
    """What somebody did, before it is known who they are.

    Attributes:
        slack_user_id: Who.
        team_ids: The workspaces that the payload names.
        name: The command, action or callback id.
        text: What was typed after a command.
        value: A button's value or a menu's choice.
        channel_id, message_ts: Where, if anywhere.
        trigger_id: Opens a modal within three seconds.
        response_url: Where the answer goes.
        view: The modal, for submissions.
    """

    slack_user_id: str
    team_ids: tuple[str, ...]
    name: str
    text: str = ""
    value: str = ""
    channel_id: str = ""
    message_ts: str = ""
    trigger_id: str = ""
    response_url: str = ""
    view: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """A click by a known person."""

    person: Person
    click: Click

    @property
    def text(self) -> str:
        """What was typed after the command."""
        return self.click.text

    @property
    def value(self) -> str:
        """The button's value or the menu's choice."""
        return self.click.value


Answer = Callable[[Ask], Awaitable[Message | None]]
Keep = Callable[[Click], Awaitable[None]]
Check = Callable[[Click], Mapping[str, str]]
Suggest = Callable[[Ask, str], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True)
class Frame:
    """What every listener needs."""

    app: AsyncApp
    people: People
    pace: CommandPace
    tasks: Tasks
    metrics: Metrics
    replies: ReplyPort
    clock: Clock

    def command(self, command: Any, answer: Answer, name: str | None = None) -> None:  # noqa: ANN401 - a name or a pattern
        """Answer a slash command; the answer is only seen by who typed it.

        `name` is what it is counted as, where `command` is a pattern.
        """

        async def listener(ack: AsyncAck, body: Body) -> None:
            await ack()
            click = _named(read_command(body), name)
            work = self._answer(click, answer, replaces=True, is_command=True)
            self.tasks.start(work, click.name)

        self.app.command(command)(listener)

    def action(
        self,
        action_id: Any,  # noqa: ANN401 - an id or a pattern
        answer: Answer,
        *,
        replaces: bool = False,
        name: str | None = None,
    ) -> None:
        """Answer a button or menu; `replaces` puts the answer in its message's place.

        `name` is what it is counted as, where `action_id` is a pattern for anything.
        """

        async def listener(ack: AsyncAck, body: Body) -> None:
            await ack()
            click = _named(read_action(body), name)
            self.tasks.start(self._answer(click, answer, replaces=replaces), click.name)

        self.app.action(action_id)(listener)

    def durable_action(self, action_id: Any, keep: Keep) -> None:  # noqa: ANN401 - an id or a pattern
        """Store a click before it is acknowledged, so that no crash can lose it."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_action(body)
            failure = await self._keep(click, keep)
            await ack()
            self._say_failure(click, failure)

        self.app.action(action_id)(listener)

    def submission(self, callback_id: str, check: Check, answer: Answer) -> None:
        """Answer a modal; what `check` finds wrong stands at its input and keeps the modal open."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_submission(body)
            wrong = check(click)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            await ack()
            self.tasks.start(self._answer(click, answer), callback_id)

        self.app.view(callback_id)(listener)

    def durable_submission(self, callback_id: str, check: Check, keep: Keep) -> None:
        """As `submission`, and stored before it is acknowledged."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            click = read_submission(body)
            wrong = check(click)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            failure = await self._keep(click, keep)
            await ack()
            self._say_failure(click, failure)

        self.app.view(callback_id)(listener)

    def options(self, action_id: str, suggest: Suggest) -> None:
        """Answer a type-ahead; on any trouble with no option, as Slack shows no error there."""

        async def listener(ack: AsyncAck, body: Body) -> None:
            try:
                click = read_suggestion(body)
                person = await self.people.find(click.slack_user_id, click.team_ids)
                found = await suggest(Ask(person, click), click.value)
            except GatehouseError as error:
                log.info("options.none", outcome=error.outcome)
                found = []
            await ack(options=found)

        self.app.options(action_id)(listener)

    async def _keep(self, click: Click, keep: Keep) -> Message | None:
        try:
            await keep(click)
        except GatehouseError as error:
            self.metrics.count_command(click.name, error.outcome)
            return replies.sorry(error)
        except Exception:
            self.metrics.count_command(click.name, "broken")
            log.exception("click.broken", name=click.name)
            return replies.sorry(DatabaseUnavailable())
        return None

    def _say_failure(self, click: Click, failure: Message | None) -> None:
        if failure is not None:
            self.tasks.start(self._say(click, failure, replace=False), click.name)

    async def _say(self, click: Click, message: Message, *, replace: bool) -> None:
        await self.replies.say(click.response_url, message, replace=replace)

    async def _answer(
        self, click: Click, answer: Answer, *, replaces: bool = False, is_command: bool = False
    ) -> None:
        request_id = uuid.uuid4().hex[:12]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            started = self.clock.monotonic()
            work = asyncio.ensure_future(self._outcome(click, answer, request_id, is_command))
            await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
            is_late = not work.done()
            if is_late:
                await self._say(click, replies.WORKING, replace=replaces and not is_command)
            message, outcome = await work
            if message is not None:
                # An error leaves the message that was clicked; what we posted ourselves goes.
                in_place = replaces and (is_late or (outcome == "ok" and not is_command))
                await self._say(click, message, replace=in_place)
            self.metrics.count_command(click.name, outcome)
            seconds = round(self.clock.monotonic() - started, 3)
            log.info("answered", name=click.name, outcome=outcome, seconds=seconds)

    async def _outcome(
        self,
        click: Click,
        answer: Answer,
        reference: str,
        is_command: bool,  # noqa: FBT001
    ) -> tuple[Message | None, str]:
        """Return what to say and a word for how it went."""
        try:
            if is_command:
                self.pace.admit(click.slack_user_id, self.clock.monotonic())
            person = await self.people.find(click.slack_user_id, click.team_ids)
            return await answer(Ask(person, click)), "ok"
        except GatehouseError as error:
            return replies.sorry(error), error.outcome
        except Exception:
            log.exception("answer.broken", name=click.name)
            return replies.broken(reference), "broken"


def _named(click: Click, name: str | None) -> Click:
    return click if name is None else replace(click, name=name)


def _teams(body: Body) -> tuple[str, ...]:
    """Every workspace that a payload names: a person of another one may act in a shared channel."""
    team, user = body.get("team") or {}, body.get("user") or {}
    named = (body.get("team_id"), team.get("id"), user.get("team_id"))
    return tuple(one for one in named if one)


def read_command(body: Body) -> Click:
    """Read a slash command."""
    return Click(
        slack_user_id=body.get("user_id", ""),
        team_ids=_teams(body),
        name=body.get("command", ""),
        text=body.get("text") or "",
        channel_id=body.get("channel_id", ""),
        trigger_id=body.get("trigger_id", ""),
        response_url=body.get("response_url", ""),
    )


def read_action(body: Body) -> Click:
    """Read a button or a menu."""
    action = (body.get("actions") or [{}])[0]
    chosen = action.get("selected_option") or {}
    container = body.get("container") or {}
    return Click(
        slack_user_id=(body.get("user") or {}).get("id", ""),
        team_ids=_teams(body),
        name=action.get("action_id", ""),
        value=action.get("value") or chosen.get("value") or "",
        channel_id=container.get("channel_id") or (body.get("channel") or {}).get("id", ""),
        message_ts=container.get("message_ts", ""),
        trigger_id=body.get("trigger_id", ""),
        response_url=body.get("response_url", ""),
        view=body.get("view") or {},
    )


def read_submission(body: Body) -> Click:
    """Read a modal; its `private_metadata` may hold, as `reply_to`, where the answer goes."""
    view = body.get("view") or {}
    return Click(
        slack_user_id=(body.get("user") or {}).get("id", ""),
        team_ids=_teams(body),
        name=view.get("callback_id", ""),
        value=view.get("private_metadata", ""),
        trigger_id=body.get("trigger_id", ""),
        response_url=hidden(view, "reply_to"),
        view=view,
    )


def read_suggestion(body: Body) -> Click:
    """Read what is typed into a type-ahead."""
    return Click(
        slack_user_id=(body.get("user") or {}).get("id", ""),
        team_ids=_teams(body),
        name=body.get("action_id", ""),
        value=body.get("value") or "",
        view=body.get("view") or {},
    )
