"""`/testusers`: a flow's test users, and the approvals of changes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from bot.approvals.rules.approval import Act
from bot.commands import TESTUSERS
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
from bot.testusers.parse.command import (
    ChangeRequest,
    DeletePreset,
    FormRequest,
    HelpRequest,
    HistoryRequest,
    ListRequest,
    MineRequest,
    PresetsRequest,
    SavePreset,
    TestusersRequest,
    as_command,
    parse_testusers,
    reason_problem,
)
from bot.testusers.parse.form import FormProblems, TypedForm, parse_form
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Answer, Context, Interaction, Listeners, Store
from handlers.modals import hidden, typed_value

Show = Callable[[Context, Workflows, pages.FlowPage], Awaitable[Message]]
ACTS = {
    ids.TESTUSERS_APPROVE: (Act.APPROVE, Permission.DECIDE),
    ids.TESTUSERS_CANCEL: (Act.CANCEL, Permission.REQUEST),
    ids.TESTUSERS_RETRY: (Act.RETRY, Permission.DECIDE),
    ids.TESTUSERS_UNDO: (Act.UNDO, Permission.REQUEST),
}


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command, the buttons of cards and pages, and the two modals."""

    def parse(text: str) -> TestusersRequest:
        return parse_testusers(text, workflows.testusers.reading.aliases)

    listeners.command(TESTUSERS, parse, _command(workflows))
    for action_id, (act, permission) in ACTS.items():
        listeners.durable_action(action_id, permission, _store(workflows, act))
    listeners.action(
        ids.TESTUSERS_DENY,
        Permission.DECIDE,
        _ask_why(workflows),
        opens_form=True,
        requires_itself=True,
    )
    listeners.durable_submission(
        ids.TESTUSERS_DENIAL, Permission.DECIDE, _check_denial, _store_denial(workflows)
    )
    listeners.submission(
        ids.TESTUSERS_FORM,
        Permission.REQUEST,
        partial(_check_form, workflows, listeners.clock),
        _request_of_form(workflows, listeners.clock),
        partial(_command_of_form, workflows, listeners.clock),
    )
    listeners.action(
        ids.TESTUSERS_ASK_ANYWAY, Permission.REQUEST, _ask_anyway(workflows), replaces=True
    )
    for action_id in (ids.TESTUSERS_EXTEND, ids.TESTUSERS_CHANGE_LIST, ids.TESTUSERS_PERSON):
        listeners.action(action_id, Permission.REQUEST, _fill_in(workflows), opens_form=True)
    more = re.compile(rf"{re.escape(ids.TESTUSERS_MORE)}\.")
    listeners.action(more, Permission.REQUEST, _fill_in(workflows), name=ids.TESTUSERS_MORE)
    _register_pages(listeners, workflows)

    async def suggest(_: Context, typed: str) -> list[dict[str, Any]]:
        """Answer the type-ahead of flows."""
        return forms.flow_options(workflows.testusers.reading.suggestions(typed))

    listeners.options(ids.TESTUSERS_FLOW, Permission.REQUEST, suggest)


def _command(
    workflows: Workflows,
) -> Callable[[Context, TestusersRequest], Awaitable[Message | None]]:
    async def answer(context: Context, command: TestusersRequest) -> Message | None:
        """Answer `/testusers …`."""
        match command:
            case HelpRequest():
                show = partial(help_ui.of_testusers, aliases=workflows.testusers.reading.aliases)
                return await helped(context, workflows, show)
            case FormRequest():
                return await _open_form(context, workflows)
            case ChangeRequest():
                return await _request(context, workflows, command)
            case SavePreset() | DeletePreset():
                return await _preset(context, workflows, command)
            case _:
                return await _show(context, workflows, command)

    return answer


async def _show(context: Context, workflows: Workflows, command: TestusersRequest) -> Message:
    """Answer the subcommands that only read."""
    match command:
        case ListRequest(flow, text):
            return await _list(context, workflows, pages.FlowPage(flow, text=text))
        case HistoryRequest(flow):
            return await _history(context, workflows, pages.FlowPage(flow))
        case MineRequest():
            return await _own(context, workflows, pages.FlowPage())
        case PresetsRequest():
            return await _presets(context, workflows)
        case _:
            return await _pending(context, workflows, pages.FlowPage())


async def _preset(
    context: Context, workflows: Workflows, command: SavePreset | DeletePreset
) -> Message:
    saved, person = workflows.testusers.presets, context.person
    if isinstance(command, DeletePreset):
        return presets.deleted(await saved.delete(person, command.name))
    before = await saved.save(person, command.name, command.identities)
    return presets.saved(command.name, command.identities, before)


async def _open_form(
    context: Context, workflows: Workflows, known: Prefilled = NOTHING
) -> Message | None:
    """Open the form; if Slack can't open one here, offer a button that does."""
    asking, interaction = workflows.testusers.asking, context.interaction
    await asking.require(context.person)
    if not interaction.trigger_id:
        return conversation.form_button()
    flow = asking.flow(known.flow) if known.flow else None
    form = forms.change_form(
        interaction.response_url,
        await workflows.testusers.extending.filled(known),
        flow=flow,
        presets=await workflows.testusers.presets.names(),
        longest=asking.longest(flow) if flow else "",
    )
    await workflows.modals.open_view(interaction.trigger_id, form)
    return None


async def _own(context: Context, workflows: Workflows, wanted: pages.FlowPage) -> Message:
    reading, person = workflows.testusers.reading, context.person
    page = await reading.own(person, wanted.page)
    asks = workflows.people.may(person, Permission.REQUEST)
    return own.own(page, sees_identities=reading.sees_identities(person), asks=asks)


async def _presets(context: Context, workflows: Workflows) -> Message:
    saved = await workflows.testusers.presets.every(context.person)
    sees = workflows.testusers.reading.sees_identities(context.person)
    flow = next(iter(workflows.testusers.reading.aliases), "")
    return presets.listing(saved, sees_identities=sees, flow=flow)


def _fill_in(workflows: Workflows) -> Answer:
    async def fill_in(context: Context) -> Message | None:
        """Answer `Extend`, `Remove` and `Change…`: send the request, or open the filled-in form."""
        await workflows.testusers.asking.require(context.person)
        known = Prefilled.of(context.value)
        if not known.more_seconds:
            return await _open_form(context, workflows, known)
        flow = workflows.testusers.asking.flow(known.flow)
        until = await workflows.testusers.extending.until(
            flow, known.identities, known.more_seconds
        )
        longer = ChangeRequest("add", known.flow, known.identities, until=until)
        return await _request(context, workflows, longer)

    return fill_in


def _ask_anyway(workflows: Workflows) -> Answer:
    async def ask_anyway(context: Context) -> Message:
        """Answer `Ask anyway`: request what an earlier request also asks for."""
        command = parse_testusers(escaped(context.value.removeprefix("/testusers")))
        if not isinstance(command, ChangeRequest) or command.now:
            raise NotFound("This button can't be read. Please send the command again.")
        return await _request(context, workflows, command, anyway=True)

    return ask_anyway


async def _request(
    context: Context, workflows: Workflows, command: ChangeRequest, *, anyway: bool = False
) -> Message:
    asked = await workflows.testusers.asking.ask(
        context.person,
        command,
        context.interaction.delivery,
        anyway=anyway or not notes.value_of(command),
    )
    channel = workflows.testusers.approvals_channel
    if asked.earlier is not None:
        return notes.asked_before(
            asked.earlier,
            asked.age,
            command,
            channel,
            is_own=asked.earlier.requester.slack_user_id == context.person.slack_user_id,
            card=await workflows.testusers.card_links.link(asked.earlier.id),
        )
    zone = context.person.time_zone if command.start or command.until else ""
    message = notes.asked(asked.flow, asked.effect, asked.request, channel, zone)
    if asked.request is None or not asked.request.waits:
        return message
    card = await workflows.testusers.card_links.link(asked.request.id)
    return notes.with_next_steps(message, asked.request, card)


async def _list(context: Context, workflows: Workflows, wanted: pages.FlowPage) -> Message:
    reading = workflows.testusers.reading
    page = await reading.listed(
        context.person, wanted.flow, wanted.page, wanted.text, is_typed=context.is_typed
    )
    asks = workflows.people.may(context.person, Permission.REQUEST)
    sees = reading.sees_identities(context.person)
    return pages.listing(page, sees_identities=sees, asks=asks)


async def _history(context: Context, workflows: Workflows, wanted: pages.FlowPage) -> Message:
    reading = workflows.testusers.reading
    page = await reading.history(context.person, wanted.flow, wanted.page)
    asks = workflows.people.may(context.person, Permission.REQUEST)
    sees = reading.sees_identities(context.person)
    return pages.history(page, sees_identities=sees, asks=asks)


async def _pending(context: Context, workflows: Workflows, wanted: pages.FlowPage) -> Message:
    reading = workflows.testusers.reading
    page = await reading.pending(context.person, wanted.page)
    channel = workflows.testusers.approvals_channel
    return pages.pending(page, channel, sees_identities=reading.sees_identities(context.person))


def _register_pages(listeners: Listeners, workflows: Workflows) -> None:
    shown = {
        ids.TESTUSERS_LIST_PAGE: _list,
        ids.TESTUSERS_HISTORY_PAGE: _history,
        ids.TESTUSERS_REQUESTS_PAGE: _pending,
        ids.TESTUSERS_MINE_PAGE: _own,
    }
    for action_id, show in shown.items():
        turn = partial(_turn, workflows, show)
        pattern = re.compile(rf"{re.escape(action_id)}\.")
        listeners.action(pattern, Permission.READ, turn, replaces=True, name=action_id)


async def _turn(workflows: Workflows, show: Show, context: Context) -> Message:
    return await show(context, workflows, pages.FlowPage.of(context.value))


def _store(workflows: Workflows, act: Act) -> Store:
    async def store(interaction: Interaction) -> None:
        """Store the click of a button."""
        await workflows.testusers.interactions.store(
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

    return store


def _ask_why(workflows: Workflows) -> Answer:
    async def ask_why(context: Context) -> None:
        """Answer `Deny`: ask for the reason, if the person may deny and the request is open."""
        request = await workflows.testusers.deciding.look_to_deny(context.person, context.value)
        page = pages.page_of_block(context.interaction.block_id)
        form = forms.denial_form(request, context.interaction.response_url, page)
        await workflows.modals.open_view(context.interaction.trigger_id, form)

    return ask_why


def _store_denial(workflows: Workflows) -> Store:
    async def store(interaction: Interaction) -> None:
        """Store a denial with its reason."""
        reason = " ".join(typed_value(interaction.view, ids.TESTUSERS_REASON).split())
        await workflows.testusers.interactions.store(
            StoredInteraction(
                Act.DENY,
                hidden(interaction.view, "request"),
                interaction.slack_user_id,
                interaction.team_ids,
                interaction.response_url,
                reason,
                hidden(interaction.view, "page"),
            )
        )

    return store


def _check_denial(interaction: Interaction) -> Mapping[str, str]:
    reason = " ".join(typed_value(interaction.view, ids.TESTUSERS_REASON).split())
    problem = reason_problem(reason) if reason else "Please give a reason."
    return {ids.TESTUSERS_REASON: problem} if problem else {}


def _typed_form(interaction: Interaction) -> TypedForm:
    def typed(block_id: str) -> str:
        return typed_value(interaction.view, block_id)

    return TypedForm(
        typed(ids.TESTUSERS_FLOW),
        typed(ids.TESTUSERS_CHANGE),
        typed(ids.TESTUSERS_IDENTITIES),
        typed(ids.TESTUSERS_FOR),
        typed(ids.TESTUSERS_FROM),
        typed(ids.TESTUSERS_UNTIL),
        typed(ids.TESTUSERS_REASON),
    )


def _check_form(workflows: Workflows, clock: Clock, interaction: Interaction) -> Mapping[str, str]:
    """Return the problems by input; any problem keeps the form open."""
    form, now = _typed_form(interaction), clock.now()
    parsed = parse_form(form, now)
    if isinstance(parsed, FormProblems):
        found = {
            ids.TESTUSERS_FLOW: parsed.flow,
            ids.TESTUSERS_IDENTITIES: parsed.identities,
            ids.TESTUSERS_FOR: parsed.duration,
            ids.TESTUSERS_FROM: parsed.start,
            ids.TESTUSERS_UNTIL: parsed.until,
            ids.TESTUSERS_REASON: parsed.reason,
        }
        return {block_id: problem for block_id, problem in found.items() if problem}
    try:
        problem = workflows.testusers.asking.limit_problem(parsed, now)
    except UsageError as error:
        return {ids.TESTUSERS_UNTIL if parsed.until else ids.TESTUSERS_FROM: error.sentence}
    except (NotFound, NotConfigured) as error:
        return {ids.TESTUSERS_FLOW: error.sentence}
    return {ids.TESTUSERS_UNTIL if parsed.until else ids.TESTUSERS_FOR: problem} if problem else {}


def _command_of_form(workflows: Workflows, clock: Clock, interaction: Interaction) -> str:
    command = parse_form(_typed_form(interaction), clock.now())
    aliases = workflows.testusers.reading.aliases
    return "" if isinstance(command, FormProblems) else as_command(command, aliases)


def _request_of_form(workflows: Workflows, clock: Clock) -> Answer:
    async def request(context: Context) -> Message | None:
        """Request the change in the form."""
        command = parse_form(_typed_form(context.interaction), clock.now())
        if isinstance(command, FormProblems):
            return None
        return await _request(context, workflows, command)

    return request
