"""Registers listeners: acknowledge, require the permission, answer whatever happens.

No listener can be registered without saying which permission it requires; None says that it is for
everyone of the workspace. It is required before the handler runs. What is stored to be processed
later (`durable_…`) is required then, as the permission may depend on what is stored.

Bolt forgets an acknowledgement when its listener raises right after it, and does not wait for
listeners when the program stops. So a listener here only reads, acknowledges and starts a task; the
task catches everything (`handlers/answering.py`), and a stop waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.response import BoltResponse

from bot.background.tasks import Tasks
from bot.commands import FORM, Command
from bot.dataclass import dataclass
from bot.errors import GatehouseError, Replayed, TooManyCommands, UsageError
from bot.model.pace import Deed, Pace
from bot.ops.clock import Clock
from bot.ops.deliveries import delivery_id, new_delivery_id
from bot.ops.metrics import Metrics
from bot.permissions import ACTING, Permission, Person
from bot.ui import replies
from bot.ui.message import Message
from bot.workflows.people import People
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

# Slack waits three seconds for an acknowledgement, and for the options of a type-ahead.
STORE_SECONDS = 1.5
SUGGEST_SECONDS = 2.0
# An event that could not be stored by then is acknowledged all the same: many come at once.
EVENT_SECONDS = 0.05


@dataclass(frozen=True)
class Listeners:
    """What every listener needs."""

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
        """What commands, actions and forms are counted as."""
        return {one.counted_as or one.name for one in self.registrations}

    def command(
        self,
        command: Command,
        parse: Callable[[str], C],
        answer: Callable[[Context, C], Awaitable[Message | None]],
    ) -> None:
        """Answer a slash command; the answer is only seen by who typed it.

        What was typed is parsed, and the permission of its form required, before `answer` runs.
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
        """Return the error with the forms that the person may use; refuse a form that is not one.

        Raises:
            Refused: They may not use the form that they mistyped.
        """
        if error.kind is not None:
            await self.people.require(person, command.permission(error.kind))
            return error
        may = command.only(lambda permission: self.people.may(person, permission))
        return may.misuse(error.sentence).or_rather(*error.meant)

    def same_as(self, command: Command) -> Answer:
        """Return what answers the command, which may be registered later."""

        async def answer(context: Context) -> Message | None:
            return await self.commands[command.name](context)

        return answer

    def other_commands(self, pattern: Name, answer: Answer, name: str) -> None:
        """Answer the commands that are not described, for everyone; all are counted as `name`."""
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
        """Store an event before it is acknowledged; Slack delivers again what cannot be stored."""
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
        """Answer a command that came otherwise than as one; the answer goes where `port` says."""
        answering = Answering(self.people, self.pace, self.metrics, port, self.clock)
        await answering.answer(interaction, answer, Place.COMMAND, deed=Deed.COMMAND)

    def shortcut(self, callback_id: str, permission: Permission, answer: Answer) -> None:
        """Answer a shortcut with a form; words are for what goes wrong only."""
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
        """Answer a button or menu; `replaces` puts the answer in its message's place.

        Where it `opens_form`, that is the answer, and words are for what goes wrong only. Where
        the permission depends on a request, the answer `requires_itself` what is declared here.
        `name` is what it is counted as, where `action_id` is a pattern for anything.
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
        """Store a click before it is acknowledged, so that no crash can lose it."""
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
        """Answer a modal that a command opened, over that command's response_url.

        What `check` finds wrong stands at its input and keeps the modal open. A modal that is
        closed keeps nothing: what is `typed` for the same stands under every error.
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
        """As `submission`, and stored before it is acknowledged."""
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
        """Answer a type-ahead; on any trouble with no option, as Slack shows no error there."""
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
        """Register the listener; return the answer behind what it requires.

        What `acts`, and does not only open a form, does so once for one request of Slack's.
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
        """Return if the person may, and the same request of Slack's has not acted before."""
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
        """Answer in a task of our own, which outlives the listener and which a stop waits for."""
        answering = Answering(self.people, self.pace, self.metrics, self.replies, self.clock)
        work = answering.answer(interaction, answer, place, deed=deed, counted_as=counted_as)
        self.tasks.start(work, counted_as or interaction.name)

    def _too_fast(self, interaction: Interaction) -> Mapping[str, str]:
        """What to say at a form's first input to who sends more of them than anybody fills in."""
        try:
            self._count(interaction, Deed.INTERACTION)
        except TooManyCommands as error:
            self.metrics.count_command(interaction.name, error.outcome)
            return {first_input(interaction.view): error.sentence}
        return {}

    def _is_too_fast(self, interaction: Interaction) -> bool:
        """Whether a button is pressed more often than anybody decides; it is said once."""
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
        """Store the click; return before Slack gives up, and then store it behind its back.

        A person who is told of a timeout clicks again, while the first click may well count.
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
        """Say what went wrong, in a task of its own: the acknowledgement need not wait for it."""

        async def say() -> None:
            await self.replies.say(interaction.response_url, message, to=interaction.slack_user_id)

        self.tasks.start(say(), interaction.name)
