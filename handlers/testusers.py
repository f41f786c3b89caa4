"""`/testusers`: a flow's test users, and the approvals of changes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.approvals.rules.approval import Act
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import NotConfigured, NotFound, UsageError
from bot.ops.clock import Clock
from bot.permissions import Permission
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids
from bot.slack.messages.message import Message
from bot.slack.parse.words import escaped
from bot.testusers.interactions import StoredInteraction
from bot.testusers.messages import conversation, forms, notes, own, pages, presets
from bot.testusers.messages.buttons import NOTHING, Prefilled
from bot.testusers.parse.change import ChangeRequest, reason_problem
from bot.testusers.parse.command import Subcommand, TestusersRequest, as_command, parse_testusers
from bot.testusers.parse.form import TypedForm, parse_form
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Interaction, Listeners
from handlers.modals import hidden, typed_value

ACTS = {
    ids.TESTUSERS_APPROVE: (Act.APPROVE, Permission.DECIDE),
    ids.TESTUSERS_CANCEL: (Act.CANCEL, Permission.REQUEST),
    ids.TESTUSERS_RETRY: (Act.RETRY, Permission.DECIDE),
    ids.TESTUSERS_UNDO: (Act.UNDO, Permission.REQUEST),
}
# The inputs of the form by the fields of `TypedForm`.
INPUTS = {
    "flow": ids.TESTUSERS_FLOW,
    "kind": ids.TESTUSERS_CHANGE,
    "identities": ids.TESTUSERS_IDENTITIES,
    "duration": ids.TESTUSERS_FOR,
    "start": ids.TESTUSERS_FROM,
    "until": ids.TESTUSERS_UNTIL,
    "reason": ids.TESTUSERS_REASON,
}


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command, the buttons of cards and pages, and the two modals."""
    answers = _Answers(workflows, listeners.clock)
    listeners.command(TESTUSERS, answers.parse, answers.command)
    for action_id, (act, permission) in ACTS.items():
        listeners.durable_action(action_id, permission, partial(answers.store, act))
    listeners.action(
        ids.TESTUSERS_DENY,
        Permission.DECIDE,
        answers.ask_why,
        opens_form=True,
        requires_itself=True,
    )
    listeners.durable_submission(
        ids.TESTUSERS_DENIAL, Permission.DECIDE, _check_denial, answers.store_denial
    )
    listeners.submission(
        ids.TESTUSERS_FORM,
        Permission.REQUEST,
        answers.check_form,
        answers.request_of_form,
        answers.command_of_form,
    )
    listeners.action(
        ids.TESTUSERS_ASK_ANYWAY, Permission.REQUEST, answers.ask_anyway, replaces=True
    )
    for action_id in (ids.TESTUSERS_EXTEND, ids.TESTUSERS_CHANGE_LIST, ids.TESTUSERS_PERSON):
        listeners.action(action_id, Permission.REQUEST, answers.fill_in, opens_form=True)
    more = re.compile(rf"{re.escape(ids.TESTUSERS_MORE)}\.")
    listeners.action(more, Permission.REQUEST, answers.fill_in, name=ids.TESTUSERS_MORE)
    turning = {
        ids.TESTUSERS_LIST_PAGE: answers.listed,
        ids.TESTUSERS_HISTORY_PAGE: answers.history,
        ids.TESTUSERS_REQUESTS_PAGE: answers.pending,
        ids.TESTUSERS_MINE_PAGE: answers.own,
    }
    for action_id, show in turning.items():
        pattern = re.compile(rf"{re.escape(action_id)}\.")
        turn = partial(_turn, show)
        listeners.action(pattern, Permission.READ, turn, replaces=True, name=action_id)
    listeners.options(ids.TESTUSERS_FLOW, Permission.REQUEST, answers.suggest)


@dataclass(frozen=True)
class _Answers:
    workflows: Workflows
    clock: Clock

    def parse(self, text: str) -> TestusersRequest:
        """Read the text of the command."""
        return parse_testusers(text, self.workflows.testusers.reading.aliases)

    async def command(self, context: Context, command: TestusersRequest) -> Message | None:
        """Answer `/testusers …`."""
        if isinstance(command, ChangeRequest):
            return await self._request(context, command)
        shown = {
            "list": self.listed,
            "history": self.history,
            "requests": self.pending,
            "mine": self.own,
        }.get(command.form)
        if shown is not None:
            return await shown(context, pages.FlowPage(command.flow, text=command.text))
        if command.form == FORM:
            return await self._open_form(context)
        if command.form == HELP:
            aliases = self.workflows.testusers.reading.aliases
            show = partial(help_ui.of_testusers, aliases=aliases)
            return await helped(context, self.workflows, show)
        return await self._presets(context, command)

    async def listed(self, context: Context, wanted: pages.FlowPage) -> Message:
        """Show a page of a flow's list."""
        reading, person = self.workflows.testusers.reading, context.person
        page = await reading.listed(
            person, wanted.flow, wanted.page, wanted.text, is_typed=context.is_typed
        )
        return pages.listing(page, **self._rights(context))

    async def history(self, context: Context, wanted: pages.FlowPage) -> Message:
        """Show a page of a flow's requests."""
        reading = self.workflows.testusers.reading
        page = await reading.history(context.person, wanted.flow, wanted.page)
        return pages.history(page, **self._rights(context))

    async def own(self, context: Context, wanted: pages.FlowPage) -> Message:
        """Show a page of the person's requests, and of the access that they requested."""
        page = await self.workflows.testusers.reading.own(context.person, wanted.page)
        return own.own(page, **self._rights(context))

    async def pending(self, context: Context, wanted: pages.FlowPage) -> Message:
        """Show a page of the open requests."""
        reading = self.workflows.testusers.reading
        page = await reading.pending(context.person, wanted.page)
        sees = reading.sees_identities(context.person)
        return pages.pending(page, self.workflows.testusers.approvals_channel, sees_identities=sees)

    def _rights(self, context: Context) -> dict[str, bool]:
        return {
            "sees_identities": self.workflows.testusers.reading.sees_identities(context.person),
            "asks": self.workflows.people.may(context.person, Permission.REQUEST),
        }

    async def _presets(self, context: Context, command: Subcommand) -> Message:
        saved, person = self.workflows.testusers.presets, context.person
        if command.form == "save_preset":
            before = await saved.save(person, command.text, command.identities)
            return presets.saved(command.text, command.identities, before)
        if command.form == "delete_preset":
            return presets.deleted(await saved.delete(person, command.text))
        reading = self.workflows.testusers.reading
        flow, sees = next(iter(reading.aliases), ""), reading.sees_identities(person)
        return presets.listing(await saved.every(person), sees_identities=sees, flow=flow)

    async def _open_form(self, context: Context, known: Prefilled = NOTHING) -> Message | None:
        """Open the form; if Slack can't open one here, offer a button that does."""
        testusers, interaction = self.workflows.testusers, context.interaction
        await testusers.asking.require(context.person)
        if not interaction.trigger_id:
            return conversation.form_button()
        flow = testusers.asking.flow(known.flow) if known.flow else None
        form = forms.change_form(
            interaction.response_url,
            await testusers.extending.filled(known),
            flow=flow,
            presets=await testusers.presets.names(),
            longest=testusers.asking.longest(flow) if flow else "",
        )
        await self.workflows.modals.open_view(interaction.trigger_id, form)
        return None

    async def fill_in(self, context: Context) -> Message | None:
        """Answer `Extend`, `Remove` and `Change…`: send the request, or open the filled-in form."""
        testusers = self.workflows.testusers
        await testusers.asking.require(context.person)
        known = Prefilled.of(context.value)
        if not known.more_seconds:
            return await self._open_form(context, known)
        flow = testusers.asking.flow(known.flow)
        until = await testusers.extending.until(flow, known.identities, known.more_seconds)
        longer = ChangeRequest("add", known.flow, known.identities, until=until)
        return await self._request(context, longer)

    async def ask_anyway(self, context: Context) -> Message:
        """Answer `Ask anyway`: request what an earlier request also asks for."""
        command = parse_testusers(escaped(context.value.removeprefix("/testusers")))
        if not isinstance(command, ChangeRequest) or command.now:
            raise NotFound("This button can't be read. Please send the command again.")
        return await self._request(context, command, anyway=True)

    async def _request(
        self, context: Context, command: ChangeRequest, *, anyway: bool = False
    ) -> Message:
        testusers, person = self.workflows.testusers, context.person
        channel = testusers.approvals_channel
        asked = await testusers.asking.ask(
            person,
            command,
            context.interaction.delivery,
            anyway=anyway or not notes.value_of(command),
        )
        if asked.earlier is not None:
            return notes.asked_before(
                asked.earlier,
                asked.age,
                command,
                channel,
                is_own=asked.earlier.requester.slack_user_id == person.slack_user_id,
                card=await testusers.card_links.link(asked.earlier.id),
            )
        zone = person.time_zone if command.start or command.until else ""
        message = notes.asked(asked.flow, asked.effect, asked.request, channel, zone)
        if asked.request is None or not asked.request.waits:
            return message
        card = await testusers.card_links.link(asked.request.id)
        return notes.with_next_steps(message, asked.request, card)

    async def store(self, act: Act, interaction: Interaction) -> None:
        """Store the click of a button."""
        await self.workflows.testusers.interactions.store(
            StoredInteraction(
                act,
                interaction.value,
                interaction.slack_user_id,
                interaction.team_ids,
                interaction.response_url,
                page=pages.page_of_block(interaction.block_id),
                channel_id="" if interaction.is_for_one else interaction.channel_id,
                message_ts=interaction.message_ts,
            )
        )

    async def ask_why(self, context: Context) -> None:
        """Answer `Deny`: ask for the reason, if the person may deny and the request is open."""
        deciding = self.workflows.testusers.deciding
        request = await deciding.look_to_deny(context.person, context.value)
        page = pages.page_of_block(context.interaction.block_id)
        form = forms.denial_form(request, context.interaction.response_url, page)
        await self.workflows.modals.open_view(context.interaction.trigger_id, form)

    async def store_denial(self, interaction: Interaction) -> None:
        """Store a denial with its reason."""
        await self.workflows.testusers.interactions.store(
            StoredInteraction(
                Act.DENY,
                hidden(interaction.view, "request"),
                interaction.slack_user_id,
                interaction.team_ids,
                interaction.response_url,
                _denial_reason(interaction),
                hidden(interaction.view, "page"),
            )
        )

    def check_form(self, interaction: Interaction) -> Mapping[str, str]:
        """Return the problems by input; any problem keeps the form open."""
        now = self.clock.now()
        parsed = parse_form(_typed_form(interaction), now)
        if isinstance(parsed, dict):
            return {INPUTS[name]: problem for name, problem in parsed.items()}
        try:
            problem = self.workflows.testusers.asking.limit_problem(parsed, now)
        except UsageError as error:
            return {ids.TESTUSERS_UNTIL if parsed.until else ids.TESTUSERS_FROM: error.sentence}
        except (NotFound, NotConfigured) as error:
            return {ids.TESTUSERS_FLOW: error.sentence}
        end = ids.TESTUSERS_UNTIL if parsed.until else ids.TESTUSERS_FOR
        return {end: problem} if problem else {}

    def command_of_form(self, interaction: Interaction) -> str:
        """Return the command that makes the request in the form; "" if no command can."""
        command = parse_form(_typed_form(interaction), self.clock.now())
        return as_command(command) if isinstance(command, ChangeRequest) else ""

    async def request_of_form(self, context: Context) -> Message | None:
        """Request the change in the form."""
        command = parse_form(_typed_form(context.interaction), self.clock.now())
        if not isinstance(command, ChangeRequest):
            return None
        return await self._request(context, command)

    async def suggest(self, _: Context, typed: str) -> list[dict[str, Any]]:
        """Answer the type-ahead of flows."""
        return forms.flow_options(self.workflows.testusers.reading.suggestions(typed))


async def _turn(
    show: Callable[[Context, pages.FlowPage], Awaitable[Message]], context: Context
) -> Message:
    return await show(context, pages.FlowPage.of(context.value))


def _denial_reason(interaction: Interaction) -> str:
    return " ".join(typed_value(interaction.view, ids.TESTUSERS_REASON).split())


def _check_denial(interaction: Interaction) -> Mapping[str, str]:
    reason = _denial_reason(interaction)
    problem = reason_problem(reason) if reason else "Please give a reason."
    return {ids.TESTUSERS_REASON: problem} if problem else {}


def _typed_form(interaction: Interaction) -> TypedForm:
    inputs = {name: typed_value(interaction.view, block) for name, block in INPUTS.items()}
    return TypedForm(**inputs)
