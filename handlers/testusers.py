"""The `/testusers` command, its form, and the buttons on cards and pages about test users."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from bot.app import Gatehouse
from bot.approvals.rules import Act
from bot.commands import FORM, TESTUSERS
from bot.errors import NotConfigured, NotFound, UsageError
from bot.permissions import Permission, Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message, SlackBlock
from bot.testusers import asking, deciding, presets, reading
from bot.testusers.interactions import StoredInteraction
from bot.testusers.messages import forms, notes, pages
from bot.testusers.parse.command import (
    ChangeRequest,
    TestusersRequest,
    Unclear,
    parse_testusers,
    reason_problem,
)
from bot.testusers.parse.form import NOTHING, Prefilled, moment, parse_form, read_lines
from bot.testusers.rendering import answer_to, card_link
from handlers.listeners import Context, Place, command, listens

Show = Callable[[Gatehouse, Person, pages.FlowPage], Awaitable[Message]]
PAGES: dict[str, Show] = {
    "list": reading.listed,
    "history": reading.history,
    "requests": reading.open_requests,
    "mine": reading.own,
}
ACTS = {
    Act.APPROVE: Permission.DECIDE,
    Act.CANCEL: Permission.REQUEST,
    Act.RETRY: Permission.DECIDE,
    Act.UNDO: Permission.REQUEST,
}
# The form input for each field of `Prefilled`.
INPUTS = {
    "flow": ids.TESTUSERS_FLOW,
    "kind": ids.TESTUSERS_CHANGE,
    "lines": ids.TESTUSERS_IDENTITIES,
    "duration": ids.TESTUSERS_FOR,
    "until": ids.TESTUSERS_UNTIL,
    "reason": ids.TESTUSERS_REASON,
}


@command(TESTUSERS, lambda context: parse_testusers(context.text, context.bot.flows.aliases))
async def answer_testusers(context: Context, typed: TestusersRequest) -> Message | None:
    """Answer `/testusers` with a page, the form, or the result of the requested change."""
    bot, person = context.bot, context.person
    if isinstance(typed, ChangeRequest | Unclear):
        return await _request(context, typed)
    if show := PAGES.get(typed.form):
        return await show(bot, person, pages.FlowPage(typed.flow, text=typed.text))
    if typed.form == FORM:
        return await _open_form(context)
    if typed.form == "save_preset":
        before = await presets.save_preset(bot, person, typed.text, typed.identities)
        return notes.preset_saved(typed.text, typed.identities, before)
    if typed.form == "delete_preset":
        return notes.preset_deleted(await presets.delete_preset(bot, person, typed.text))
    saved, reads = await presets.every_preset(bot, person), await reading.reader(bot, person)
    return notes.presets(saved, reads.show, next(iter(bot.flows.aliases), ""))


for _kind, _page in PAGES.items():

    @listens("action", ids.testusers_page(_kind), Permission.READ, place=Place.CLICKED)
    async def turn(context: Context, show: Show = _page) -> Message:
        """Show the page that a paging button leads to."""
        return await show(context.bot, context.person, pages.FlowPage.of(context.value))


async def _open_form(context: Context, known: Prefilled = NOTHING) -> Message | None:
    interaction = context.interaction
    await asking.require_asking(context.bot, context.person)
    if not interaction.trigger_id:
        return notes.open_form()
    await context.bot.slack.open_view(interaction.trigger_id, await _form(context, known))
    return None


async def _form(context: Context, known: Prefilled) -> dict[str, Any]:
    bot = context.bot
    flow = bot.flows.named(known.flow) if known.flow else None
    return forms.change_form(
        context.interaction.response_url,
        await asking.with_current_end(bot, known),
        flow=flow,
        presets=await presets.names(bot),
        longest=asking.longest(bot, flow) if flow else "",
    )


@listens("action", ids.TESTUSERS_EXTEND, Permission.REQUEST, place=Place.FORM)
@listens("action", ids.TESTUSERS_PERSON, Permission.REQUEST, place=Place.FORM)
@listens("action", ids.TESTUSERS_MORE, Permission.REQUEST)
async def fill_in(context: Context) -> Message | None:
    """Open a prefilled form. For `+2 h` and `+1 day`, request the extension without a form."""
    bot, known = context.bot, Prefilled.of(context.value)
    if not known.more_seconds:
        return await _open_form(context, known)
    flow, more = bot.flows.named(known.flow), known.more_seconds
    until = await asking.extended_end(bot, flow, known.identities, more)
    return await _request(context, ChangeRequest("add", known.flow, known.identities, until=until))


async def _request(context: Context, typed: ChangeRequest | Unclear) -> Message:
    bot, person = context.bot, context.person
    if isinstance(typed, Unclear):
        await asking.require_asking(bot, person)
        return notes.unclear(typed, await asking.understood(bot, person, typed.understood))
    asked = await asking.ask(bot, person, typed)
    if asked.earlier is not None:
        link, now = await card_link(bot, asked.earlier.id), await bot.database.now()
        reader, channel = person.slack_user_id, bot.settings.approvals_channel
        return notes.asked_before(asked.earlier, reader, now, channel, link)
    return await answer_to(bot, asked, person.time_zone if typed.until else "")


for _act, _permission in ACTS.items():

    @listens("action", f"{ids.TESTUSERS_ACT}{_act}", _permission, place=Place.LATER)
    async def store(context: Context, act: Act = _act) -> None:
        """Store a click on a request's button so that a job can perform the action."""
        interaction = context.interaction
        await _store(
            context,
            act,
            interaction.value,
            page=pages.page_of_block(interaction.block_id),
            channel_id="" if interaction.is_for_one else interaction.channel_id,
            message_ts=interaction.message_ts,
        )


async def _store(
    context: Context,
    act: Act,
    request_id: str,
    **more: Any,  # noqa: ANN401 - the other fields of `StoredInteraction`
) -> None:
    user, teams = context.interaction.slack_user_id, context.interaction.team_ids
    url = context.interaction.response_url
    await context.bot.clicks.store(StoredInteraction(act, request_id, user, teams, url, **more))


@listens(
    "action",
    f"{ids.TESTUSERS_ACT}{Act.DENY}",
    Permission.DECIDE,
    place=Place.FORM,
    requires_itself=True,
)
async def ask_why(context: Context) -> None:
    """Handle `Deny`: if the request can still be denied, open a form that asks for the reason."""
    request = await deciding.look_to_deny(context.bot, context.person, context.value)
    page = pages.page_of_block(context.interaction.block_id)
    form = forms.denial_form(request, context.interaction.response_url, page)
    await context.bot.slack.open_view(context.interaction.trigger_id, form)


def _denial_reason(context: Context) -> str:
    return " ".join(context.interaction.typed(ids.TESTUSERS_REASON).split())


def _check_denial(context: Context) -> Mapping[str, str]:
    reason = _denial_reason(context)
    problem = reason_problem(reason) if reason else "Please give a reason."
    return {ids.TESTUSERS_REASON: problem} if problem else {}


@listens("view", ids.TESTUSERS_DENIAL, Permission.DECIDE, place=Place.LATER, check=_check_denial)
async def store_denial(context: Context) -> None:
    """Store a denial and its reason so that a job can deny the request."""
    request_id, page = map(context.interaction.hidden, ("request", "page"))
    reason = _denial_reason(context)
    await _store(context, Act.DENY, request_id, denial_reason=reason, page=page)


def _typed_form(context: Context) -> Prefilled:
    typed: dict[str, Any] = {
        name: context.interaction.typed(block_id) for name, block_id in INPUTS.items()
    }
    until = moment(typed["until"])
    return Prefilled(**{**typed, "until": until, "lines": tuple(typed["lines"].split("\n"))})


def _parse_form(context: Context) -> ChangeRequest | dict[str, str]:
    return parse_form(_typed_form(context), context.bot.clock.now())


def _check_form(context: Context) -> Mapping[str, str]:
    """Return error messages keyed by block ID. Slack keeps the form open if there are any."""
    parsed = _parse_form(context)
    if isinstance(parsed, dict):
        return {INPUTS[name]: problem for name, problem in parsed.items()}
    try:
        problem = asking.limit_problem(context.bot, parsed, context.bot.clock.now())
    except UsageError as error:
        return {ids.TESTUSERS_UNTIL: error.sentence}
    except (NotFound, NotConfigured) as error:
        return {ids.TESTUSERS_FLOW: error.sentence}
    return {ids.TESTUSERS_UNTIL if parsed.until else ids.TESTUSERS_FOR: problem} if problem else {}


def _filled_form(context: Context) -> str:
    """Return the value of a button that opens the form again, as it was submitted."""
    form = _typed_form(context)
    identities, _ = read_lines(form.lines)
    return replace(form, identities=identities).value()


@listens(
    "view",
    ids.TESTUSERS_FORM,
    Permission.REQUEST,
    place=Place.NEW,
    check=_check_form,
    typed=_filled_form,
)
async def request_of_form(context: Context) -> Message | None:
    """Make the request described in a submitted form."""
    typed = _parse_form(context)
    return await _request(context, typed) if isinstance(typed, ChangeRequest) else None


@listens("options", ids.TESTUSERS_FLOW, Permission.REQUEST)
async def suggest(context: Context) -> list[SlackBlock]:
    """Return the flows that match the text in the form's flow input."""
    return reading.suggestions(context.bot, context.value)
