"""Registers listeners: acknowledge, require the permission, then answer.

Every listener must declare the permission it requires; None allows everyone in the workspace. The
permission is checked before the handler runs. Stored clicks (`durable_…`) are checked when they are
processed, as the permission may depend on stored data.

Bolt drops an acknowledgement if its listener raises right after it, and doesn't wait for listeners
when the program stops. So a listener here only reads, acknowledges and starts a task; the task
catches everything (`handlers/answering.py`), and a stop waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.response import BoltResponse

from bot.commands import FORM, Command
from bot.errors import GatehouseError, Replayed, TooManyCommands, UsageError
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.current_delivery import delivery_id, new_delivery_id
from bot.permissions import ACTING, Permission, Person
from bot.slack.messages import replies
from bot.slack.messages.message import Message
from bot.slack.people import People
from bot.slack.rules.pace import Deed, Pace
from bot.tasks import Tasks
from handlers.answering import Answer, Answering, Place, ReplyPort, found_by
from handlers.interactions import (
    Body,
    Context,
    Interaction,
    first_input,
    read_action,
    read_command,
    read_event,
    read_shortcut,
    read_submission,
    read_suggestion,
)
from handlers.registration import (
    C,
    Check,
    DeliveryRecord,
    Name,
    Registration,
    Retyped,
    Store,
    Suggest,
    Surface,
)

__all__ = ["Answer", "Context", "Interaction", "Listeners", "Store"]

log = structlog.get_logger(__name__)

# Slack waits three seconds for an acknowledgement, or for a type-ahead's options.
STORE_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
# An event not stored by then is acknowledged anyway: many arrive at once.
EVENT_SECONDS = 0.05


@dataclass(frozen=True)
class Listeners:
    """Registers listeners."""

    app: AsyncApp
    people: People
    pace: Pace
    tasks: Tasks
    metrics: Metrics
    replies: ReplyPort
    clock: Clock
    deliveries: DeliveryRecord
    commands: dict[str, Answer] = field(default_factory=dict)
    registrations: list[Registration] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """Return the names under which commands, actions and forms are counted."""
        return {registration.counted_as or registration.name for registration in self.registrations}

    def command(
        self,
        command: Command,
        parse: Callable[[str], C],
        answer: Callable[[Context, C], Awaitable[Message | None]],
    ) -> None:
        """Answer a slash command; only the person who typed it sees the answer.

        `answer` runs after parsing, and after checking the permission of the typed form.
        """

        async def parse_and_answer(context: Context) -> Message | None:
            try:
                typed = parse(context.text)
            except UsageError as error:
                raise await self._usage_for(context.person, command, error) from None
            permission = command.permission(typed.form)
            await self._require(context, permission, acts=typed.form != FORM)
            return await answer(context, typed)

        self.registrations.extend(
            Registration("command", command.name, form.permission) for form in command.forms
        )
        self._listen_to_command(command.name, parse_and_answer)

    async def _usage_for(self, person: Person, command: Command, error: UsageError) -> UsageError:
        """Return the error with the forms available to the person.

        Raises:
            Refused: The mistyped form isn't available to the person.
        """
        if error.kind is not None:
            await self.people.require(person, command.permission(error.kind))
            return error
        may = command.only(lambda permission: self.people.may(person, permission))
        return may.misuse(error.sentence).or_rather(*error.meant)

    def same_as(self, command: Command) -> Answer:
        """Return the command's answer; the command may be registered later."""

        async def answer(context: Context) -> Message | None:
            return await self.commands[command.name](context)

        return answer

    def other_commands(self, pattern: Name, answer: Answer, name: str) -> None:
        """Answer undescribed commands, for everyone; all are counted as `name`."""
        self.registrations.append(Registration("command", pattern, None, name))
        self._listen_to_command(pattern, answer, name)

    def _listen_to_command(self, command: Name, answer: Answer, name: str | None = None) -> None:
        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_command(body)
            await ack()
            self._start(interaction, answer, Place.COMMAND, Deed.COMMAND, counted_as=name)

        self.app.command(command)(listener)
        self.commands[name or command] = answer

    def event(self, name: str, store: Store) -> None:
        """Store an event before acknowledging it; if that fails, Slack delivers it again."""
        self.registrations.append(Registration("event", name, None))

        async def listener(ack: AsyncAck, body: Body) -> BoltResponse | None:
            interaction, failures = read_event(body), list[str]()
            storing = self.tasks.start(
                self._store_event(interaction, store, failures), interaction.name
            )
            await asyncio.wait({storing}, timeout=EVENT_SECONDS)
            if failures:
                return BoltResponse(status=503)
            await ack()
            return None

        self.app.event(name)(listener)

    async def answer_in(self, interaction: Interaction, answer: Answer, port: ReplyPort) -> None:
        """Answer a command that wasn't a slash command; the answer goes through `port`."""
        answering = Answering(self.people, self.pace, self.metrics, port, self.clock)
        await answering.answer(interaction, answer, Place.COMMAND, deed=Deed.COMMAND)

    def shortcut(self, callback_id: str, permission: Permission, answer: Answer) -> None:
        """Answer a shortcut with a form; messages are only for errors."""
        permitted = self._permitted("shortcut", callback_id, permission, answer, acts=False)

        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_shortcut(body)
            await ack()
            self._start(interaction, permitted, Place.FORM, Deed.INTERACTION)

        self.app.shortcut(callback_id)(listener)

    def action(
        self,
        action_id: Name,
        permission: Permission | None,
        answer: Answer,
        *,
        replaces: bool = False,
        opens_form: bool = False,
        requires_itself: bool = False,
        name: str | None = None,
    ) -> None:
        """Answer a button or menu; with `replaces`, the answer replaces its message.

        With `opens_form`, the form is the answer, and messages are only for errors. If the
        permission depends on a request, `answer` checks it (`requires_itself`). Clicks are counted
        as `name` if `action_id` is a pattern.
        """
        below = Place.FORM if opens_form else Place.BELOW
        place = Place.CLICKED if replaces else below
        permitted = self._permitted(
            "action", action_id, permission, answer, acts=not opens_form, counted_as=name
        )
        if requires_itself:
            permitted = answer

        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_action(body)
            await ack()
            self._start(interaction, permitted, place, Deed.INTERACTION, counted_as=name)

        self.app.action(action_id)(listener)

    def durable_action(self, action_id: Name, permission: Permission, store: Store) -> None:
        """Store a click before acknowledging it, so that no crash loses it."""
        self.registrations.append(Registration("action", action_id, permission))

        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_action(body)
            if not self._is_too_fast(interaction):
                await self._store_in_time(interaction, store)
            await ack()

        self.app.action(action_id)(listener)

    def submission(
        self,
        callback_id: str,
        permission: Permission,
        check: Check,
        answer: Answer,
        typed: Retyped | None = None,
    ) -> None:
        """Answer a modal opened by a command, over that command's response_url.

        Problems found by `check` are shown at their inputs and keep the modal open. Closing a modal
        discards its input, so every error includes the equivalent command from `typed`.
        """
        permitted = self._permitted("view", callback_id, permission, answer)

        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_submission(body)
            wrong = self._too_fast(interaction) or check(interaction)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            await ack()
            command = typed(interaction) if typed else None
            self._start(replace(interaction, command=command), permitted, Place.COMMAND)

        self.app.view(callback_id)(listener)

    def durable_submission(
        self, callback_id: str, permission: Permission, check: Check, store: Store
    ) -> None:
        """Like `submission`, but stored before it is acknowledged."""
        self.registrations.append(Registration("view", callback_id, permission))

        async def listener(ack: AsyncAck, body: Body) -> None:
            interaction = read_submission(body)
            wrong = self._too_fast(interaction) or check(interaction)
            if wrong:
                await ack(response_action="errors", errors=dict(wrong))
                return
            await self._store_in_time(interaction, store)
            await ack()

        self.app.view(callback_id)(listener)

    def options(self, action_id: str, permission: Permission, suggest: Suggest) -> None:
        """Answer a type-ahead; on errors with no options, as Slack shows no error there."""
        self.registrations.append(Registration("options", action_id, permission))

        async def listener(ack: AsyncAck, body: Body) -> None:
            try:
                async with asyncio.timeout(SUGGEST_SECONDS):
                    found = await self._suggested(read_suggestion(body), permission, suggest)
            except (GatehouseError, TimeoutError) as error:
                log.info("options.none", outcome=getattr(error, "outcome", "timeout"))
                found = []
            except Exception:
                log.exception("options.broken", name=action_id)
                found = []
            await ack(options=found)

        self.app.options(action_id)(listener)

    def _permitted(
        self,
        surface: Surface,
        name: Name,
        permission: Permission | None,
        answer: Answer,
        *,
        acts: bool = True,
        counted_as: str | None = None,
    ) -> Answer:
        """Register the listener; return its answer behind the permission check.

        Answers that act, not only open a form, act once per Slack request.
        """
        self.registrations.append(Registration(surface, name, permission, counted_as))
        if permission is None:
            return answer

        async def require_and_answer(context: Context) -> Message | None:
            await self._require(context, permission, acts=acts)
            return await answer(context)

        return require_and_answer

    async def _require(
        self, context: Context, permission: Permission, *, acts: bool = True
    ) -> None:
        await self.people.require(context.person, permission)
        if acts and permission in ACTING and not await self.deliveries.take():
            raise Replayed("This was done before.")

    def _start(
        self,
        interaction: Interaction,
        answer: Answer,
        place: Place,
        deed: Deed | None = None,
        *,
        counted_as: str | None = None,
    ) -> None:
        """Answer in our own task, which outlives the listener and which a stop waits for."""
        answering = Answering(self.people, self.pace, self.metrics, self.replies, self.clock)
        work = answering.answer(interaction, answer, place, deed=deed, counted_as=counted_as)
        self.tasks.start(work, counted_as or interaction.name)

    def _too_fast(self, interaction: Interaction) -> Mapping[str, str]:
        try:
            self._count(interaction, Deed.INTERACTION)
        except TooManyCommands as error:
            self.metrics.count_command(interaction.name, error.outcome)
            return {first_input(interaction.view): error.sentence}
        return {}

    def _is_too_fast(self, interaction: Interaction) -> bool:
        try:
            self._count(interaction, Deed.INTERACTION)
        except TooManyCommands as error:
            self.metrics.count_command(interaction.name, error.outcome)
            if not error.is_told:
                self._tell(interaction, replies.sorry(error))
            return True
        return False

    def _count(self, interaction: Interaction, deed: Deed) -> None:
        self.pace.require(interaction.slack_user_id, self.clock.monotonic(), deed)

    async def _suggested(
        self, interaction: Interaction, permission: Permission, suggest: Suggest
    ) -> list[dict[str, Any]]:
        self._count(interaction, Deed.TYPING)
        person = await found_by(self.people, interaction)
        await self.people.require(person, permission)
        return await suggest(Context(person, interaction), interaction.value)

    async def _store_in_time(self, interaction: Interaction, store: Store) -> None:
        """Store the click; return before Slack times out, and keep storing if needed.

        People who see a timeout click again, although the first click may still count.
        """
        storing = self.tasks.start(self._store(interaction, store), interaction.name)
        await asyncio.wait({storing}, timeout=STORE_SECONDS)

    async def _store(self, interaction: Interaction, store: Store) -> None:
        try:
            await store(interaction)
        except GatehouseError as error:
            self.metrics.count_command(interaction.name, error.outcome)
            if not isinstance(error, Replayed):
                self._tell(interaction, replies.sorry(error))
        except Exception:
            self.metrics.count_command(interaction.name, "broken")
            reference = delivery_id() or new_delivery_id()
            log.exception("click.broken", name=interaction.name, reference=reference)
            self._tell(interaction, replies.broken(reference))

    async def _store_event(
        self, interaction: Interaction, store: Store, failures: list[str]
    ) -> None:
        try:
            await store(interaction)
            outcome = "ok"
        except GatehouseError as error:
            outcome = error.outcome
            failures.append(outcome)
        except Exception:
            log.exception("event.broken", name=interaction.name)
            outcome = "broken"
            failures.append(outcome)
        self.metrics.count_command(interaction.name, outcome)

    def _tell(self, interaction: Interaction, message: Message) -> None:
        """Report a problem in its own task, so that the acknowledgement needn't wait."""

        async def say() -> None:
            await self.replies.say(interaction.response_url, message, to=interaction.slack_user_id)

        self.tasks.start(say(), interaction.name)
