"""The `/testusers` command, its form, and the buttons on cards and pages about test users."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from bot.app import Gatehouse
from bot.approvals.rules import Act
from bot.approvals.times import LocalTime, moment_of, zone_of
from bot.commands import FORM, TESTUSERS
from bot.errors import GatehouseError, NotConfigured, NotFound, Refused, Unsent, UsageError
from bot.permissions import Permission, Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message, SlackBlock, Wanted
from bot.spelling import one_line
from bot.testusers import asking, deciding, presets, reading
from bot.testusers.interactions import StoredInteraction, store_click
from bot.testusers.messages import forms, notes
from bot.testusers.parse.command import (
    ChangeRequest,
    Prefilled,
    ShownRequest,
    TestusersRequest,
    moment,
    parse_form,
    parse_testusers,
    reason_problem,
)
from bot.testusers.parts import Parts, policy_of
from bot.testusers.rendering import answer_to
from handlers.bolt import GatehouseApp
from handlers.listening import STORED_CLICK, AnswerAt, Needs
from handlers.payloads import Payload
from handlers.sharing import with_share

Show = Callable[[Parts, Person, Wanted], Awaitable[Message]]
PAGES: dict[str, Show] = {
    "list": reading.listed,
    "history": reading.history,
    "requests": reading.open_requests,
    "mine": reading.own,
    "review": reading.review,
}
# `Deny` opens a form first.
STORED_ACTS = (Act.APPROVE, Act.CANCEL, Act.RETRY, Act.UNDO)
# The form input for each field of `Prefilled`.
INPUTS = {
    "flow": ids.TESTUSERS_FLOW,
    "kind": ids.TESTUSERS_CHANGE,
    "lines": ids.TESTUSERS_IDENTITIES,
    "duration": ids.TESTUSERS_FOR,
    "until": ids.TESTUSERS_UNTIL,
    "reason": ids.TESTUSERS_REASON,
}

EMPTY = Prefilled()


def register(app: GatehouseApp) -> None:
    """Register `/testusers`, its form, and the buttons on cards and pages."""
    listener = app.listening.listener
    app.command("/testusers")(app.listening.command(TESTUSERS, parse_testusers, answer))
    for kind, show in PAGES.items():
        turns = Needs(TESTUSERS.permission(kind), AnswerAt.CLICKED)
        app.action(ids.row_of(ids.testusers_page(kind)))(listener(partial(turn, show), turns))
    asks = Needs(Permission.REQUEST)
    app.shortcut(ids.CHANGE_TEST_USERS)(listener(open_form, asks))
    app.action(ids.HOME_TESTUSERS)(listener(open_form, asks))
    app.action(ids.TESTUSERS_EXTEND)(listener(extend, asks))
    app.action(ids.row_of(ids.TESTUSERS_FILL))(listener(fill_in, asks))
    suggests = Needs(Permission.REQUEST, pace="")
    app.options(ids.TESTUSERS_FLOW)(app.listening.suggest(suggest, suggests))
    submits = Needs(
        Permission.REQUEST, AnswerAt.NEW_MESSAGE, check=check_form, filled_form=filled_form
    )
    app.view(ids.TESTUSERS_FORM)(listener(request_of_form, submits))
    for act in STORED_ACTS:
        app.action(f"{ids.TESTUSERS_ACT}{act}")(listener(partial(store, act), STORED_CLICK))
    # The flow of the request decides who can deny it.
    asks_why = Needs(Permission.ASK_FOR_HELP)
    app.action(f"{ids.TESTUSERS_ACT}{Act.DENY}")(listener(ask_why, asks_why))
    denies = replace(STORED_CLICK, check=check_denial)
    app.view(ids.TESTUSERS_DENIAL)(listener(partial(store, Act.DENY), denies))


async def answer(
    bot: Gatehouse, person: Person, typed: TestusersRequest, payload: Payload
) -> Message | None:
    """Answer `/testusers` with a page, the form, or the result of the requested change."""
    parts = bot.testusers
    if isinstance(typed, ChangeRequest):
        try:
            return await _request(parts, person, typed)
        except GatehouseError as error:
            if not (error.is_passing or isinstance(error, Refused | NotConfigured)):
                error.unsent = typed.filled.unsent()
            raise
    if show := PAGES.get(typed.form):
        return await _page(parts, person, show, Wanted(typed.text, flow=typed.flow), payload)
    if typed.form == FORM:
        return await open_form(bot, person, payload)
    if typed.form == "save_preset":
        await presets.save_preset(parts, person, typed.text, typed.identities)
        return notes.preset_saved(typed.text, typed.identities)
    if typed.form == "delete_preset":
        return notes.preset_deleted(await presets.delete_preset(parts, person, typed.text))
    reads = reading.reader_of(parts, person)
    return notes.presets(await presets.every_preset(parts), reads.show)


async def turn(show: Show, bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle the buttons that turn the pages of `show`."""
    return await _page(bot.testusers, person, show, Wanted.of(payload.value), payload)


async def _page(
    parts: Parts, person: Person, show: Show, wanted: Wanted, payload: Payload
) -> Message:
    message = await show(parts, person, wanted)
    if show is not reading.listed:
        return message
    # What is shared is the list's first page, without a search text.
    return with_share(message, f"/testusers list {wanted.flow}", payload)


async def fill_in(bot: Gatehouse, person: Person, payload: Payload) -> Message | None:
    """Open a prefilled form."""
    return await open_form(bot, person, payload, Prefilled.of(payload.value))


async def extend(bot: Gatehouse, person: Person, payload: Payload) -> Message | None:
    """Open the form to extend people's access."""
    filled = await asking.extension(bot.testusers, Prefilled.of(payload.value))
    return await open_form(bot, person, payload, filled)


async def open_form(
    bot: Gatehouse, person: Person, payload: Payload, filled: Prefilled = EMPTY
) -> Message | None:
    """Open the form with what is filled in, or return a button for that if Slack can't open it."""
    parts, flow = bot.testusers, None
    with suppress(NotFound):
        flow = parts.flows.named(filled.flow) if filled.flow else None
    await asking.require_asking(parts, person, flow=flow)
    trigger_id = payload.text("trigger_id")
    if not trigger_id:
        return notes.open_form()
    if isinstance(filled.until, LocalTime):
        zone = zone_of(person.time_zone)
        until = moment_of(filled.until, parts.clock.now(), zone) if zone else None
        passed = "" if until else f"until {filled.until}"
        filled = replace(filled, until=until, duration=filled.duration or passed)
    needs_reason = flow is not None and policy_of(parts, flow).reason is not None
    form = forms.change_form(
        payload.response_url,
        filled,
        flow=flow,
        needs_reason=needs_reason,
        is_below=bool(payload.part("container")),
    )
    await parts.slack.open_view(trigger_id, form)
    return None


async def store(act: Act, bot: Gatehouse, _person: None, payload: Payload) -> None:
    """Store a click on a button of a request, or a denial, so that a job can carry it out."""
    view = payload.part("view")
    shown = ShownRequest.of(view.hidden("request") or payload.value)
    interaction = StoredInteraction(
        act,
        shown.request_id,
        payload.user_id,
        payload.team_ids,
        payload.response_url,
        _reason(view),
        shown.version,
    )
    await store_click(bot.testusers, interaction)


async def ask_why(bot: Gatehouse, person: Person, payload: Payload) -> None:
    """Handle `Deny`: if the request can still be denied, open a form that asks for a reason."""
    shown = ShownRequest.of(payload.value)
    request = await deciding.look_to_deny(bot.testusers, person, shown)
    show = reading.reader_of(bot.testusers, person).show
    form = forms.denial_form(request, payload.response_url, show)
    await bot.slack.client.open_view(payload.text("trigger_id"), form)


def check_form(bot: Gatehouse, view: Payload) -> Mapping[str, str]:
    """Return error messages keyed by block ID. Slack keeps the form open if there are any."""
    problems = parse_form(_typed_form(view))
    if isinstance(problems, ChangeRequest):
        try:
            problems = asking.policy_problems(bot.testusers, problems, bot.clock.now())
        except UsageError as error:
            problems = {"until": error.sentence}
        except (NotFound, NotConfigured) as error:
            problems = {"flow": error.sentence}
    return {INPUTS[name]: problem for name, problem in problems.items()}


async def request_of_form(bot: Gatehouse, person: Person, payload: Payload) -> Message | None:
    """Make the request described in a submitted form."""
    typed = parse_form(_typed_form(payload.part("view")))
    if not isinstance(typed, ChangeRequest):
        return None
    return await _request(bot.testusers, person, typed)


async def _request(parts: Parts, person: Person, typed: ChangeRequest) -> Message:
    asked = await asking.ask(parts, person, typed)
    return await answer_to(parts, person, asked, has_typed_time=typed.until is not None)


async def suggest(bot: Gatehouse, person: Person, payload: Payload) -> list[SlackBlock]:
    """Return the flows that match the text in the form's flow input."""
    return reading.suggestions(bot.testusers, person, payload.value)


def filled_form(view: Payload) -> Unsent:
    """Return what opens the form again, as it was submitted."""
    return _typed_form(view).unsent()


def check_denial(_bot: Gatehouse, view: Payload) -> Mapping[str, str]:
    """Return an error message if the form's reason can't be used."""
    reason = _reason(view)
    problem = reason_problem(reason) if reason else "Please give a reason."
    return {ids.TESTUSERS_REASON: problem} if problem else {}


def _reason(view: Payload) -> str:
    return one_line(view.typed(ids.TESTUSERS_REASON))


def _typed_form(view: Payload) -> Prefilled:
    typed: dict[str, Any] = {name: view.typed(block_id) for name, block_id in INPUTS.items()}
    until = moment(typed["until"])
    return Prefilled(**{**typed, "until": until, "lines": tuple(typed["lines"].split("\n"))})
