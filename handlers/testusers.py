"""`/testusers`: who may test a flow, and the approvals behind every change of that."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from bot.errors import Conflict
from bot.model.approval import Act, State
from bot.parsing.testusers import (
    EXAMPLES,
    ChangeRequest,
    FormRequest,
    HelpRequest,
    HistoryRequest,
    ListRequest,
    as_command,
    parse_testusers,
    reason_problem,
)
from bot.parsing.testusers_form import FormProblems, TypedForm, parse_form
from bot.permissions import Permission
from bot.ui import help as help_ui
from bot.ui import ids
from bot.ui.message import Message
from bot.ui.modals import hidden, typed_value
from bot.ui.testusers import forms, notes, pages
from bot.workflows.desk import Desk
from bot.workflows.testusers.clicks import StoredClick
from bot.workflows.testusers.words import state_sentence
from handlers.entry import Answer, Ask, Click, Frame, Keep

Show = Callable[[Ask, Desk, pages.View], Awaitable[Message]]
ACTS = {
    ids.TESTUSERS_APPROVE: Act.APPROVE,
    ids.TESTUSERS_CANCEL: Act.CANCEL,
    ids.TESTUSERS_RETRY: Act.RETRY,
    ids.TESTUSERS_UNDO: Act.UNDO,
}


def register(frame: Frame, desk: Desk) -> None:
    """Listen to the command, the buttons of cards and pages, and the two modals."""
    frame.command("/testusers", _command(desk))
    for action_id, act in ACTS.items():
        frame.durable_action(action_id, _keep(desk, act))
    frame.action(ids.TESTUSERS_DENY, _ask_why(desk), opens_form=True)
    frame.durable_submission(ids.TESTUSERS_DENIAL, _check_denial, _keep_denial(desk))
    frame.submission(ids.TESTUSERS_FORM, _check_form, _request_of_form(desk), _command_of_form)
    _register_pages(frame, desk)

    async def suggest(ask: Ask, typed: str) -> list[dict[str, Any]]:
        """The type-ahead of flows."""
        await desk.people.admit(ask.person, Permission.REQUEST)
        return forms.flow_options(desk.testusers.reading.suggestions(typed))

    frame.options(ids.TESTUSERS_FLOW, suggest)


def _command(desk: Desk) -> Answer:
    async def command(ask: Ask) -> Message | None:
        """`/testusers …`."""
        wish = parse_testusers(ask.text)
        match wish:
            case HelpRequest():
                may, aliases = desk.people.may, desk.testusers.reading.aliases
                return help_ui.of_testusers(
                    lambda one: may(ask.person, one), aliases, EXAMPLES["add"]
                )
            case FormRequest():
                await desk.testusers.asking.admit(ask.person)
                form = forms.change_form(ask.click.response_url)
                await desk.modals.open_view(ask.click.trigger_id, form)
                return None
            case ChangeRequest():
                return await _request(ask, desk, wish)
            case ListRequest(flow):
                return await _list(ask, desk, pages.View(flow))
            case HistoryRequest(flow):
                return await _history(ask, desk, pages.View(flow))
            case _:
                return await _pending(ask, desk, pages.View())

    return command


async def _request(ask: Ask, desk: Desk, wish: ChangeRequest) -> Message:
    asked = await desk.testusers.asking.ask(ask.person, wish, ask.click.delivery)
    channel = desk.testusers.approvals_channel
    return notes.asked(asked.flow, asked.effect, asked.request, channel)


async def _list(ask: Ask, desk: Desk, view: pages.View) -> Message:
    reading = desk.testusers.reading
    page = await reading.listed(ask.person, view.flow, view.page)
    return pages.listing(page, sees_identities=reading.sees_identities(ask.person))


async def _history(ask: Ask, desk: Desk, view: pages.View) -> Message:
    reading = desk.testusers.reading
    page = await reading.history(ask.person, view.flow, view.page)
    return pages.history(page, sees_identities=reading.sees_identities(ask.person))


async def _pending(ask: Ask, desk: Desk, view: pages.View) -> Message:
    reading = desk.testusers.reading
    page = await reading.pending(ask.person, view.page)
    channel = desk.testusers.approvals_channel
    return pages.pending(page, channel, sees_identities=reading.sees_identities(ask.person))


def _register_pages(frame: Frame, desk: Desk) -> None:
    shown = {
        ids.TESTUSERS_LIST_PAGE: _list,
        ids.TESTUSERS_HISTORY_PAGE: _history,
        ids.TESTUSERS_REQUESTS_PAGE: _pending,
    }
    for action_id, show in shown.items():
        turn = partial(_turn, desk, show)
        pattern = re.compile(rf"{re.escape(action_id)}\.")
        frame.action(pattern, turn, replaces=True, name=action_id)


async def _turn(desk: Desk, show: Show, ask: Ask) -> Message:
    """`Previous` and `Next`."""
    return await show(ask, desk, pages.View.of(ask.value))


def _keep(desk: Desk, act: Act) -> Keep:
    async def keep(click: Click) -> None:
        """Store the click of a button."""
        await desk.testusers.clicks.keep(
            StoredClick(act, click.value, click.slack_user_id, click.team_ids, click.response_url)
        )

    return keep


def _ask_why(desk: Desk) -> Answer:
    async def ask_why(ask: Ask) -> None:
        """`Deny`: ask for the reason, if the person may deny and it is not too late."""
        request = await desk.testusers.deciding.look(ask.person, Act.DENY, ask.value)
        if request.state is not State.PENDING:
            raise Conflict(state_sentence(request))
        form = forms.denial_form(request, ask.click.response_url)
        await desk.modals.open_view(ask.click.trigger_id, form)

    return ask_why


def _keep_denial(desk: Desk) -> Keep:
    async def keep(click: Click) -> None:
        """Store a denial with its reason."""
        reason = " ".join(typed_value(click.view, ids.TESTUSERS_REASON).split())
        await desk.testusers.clicks.keep(
            StoredClick(
                Act.DENY,
                hidden(click.view, "request"),
                click.slack_user_id,
                click.team_ids,
                click.response_url,
                reason,
            )
        )

    return keep


def _check_denial(click: Click) -> Mapping[str, str]:
    reason = " ".join(typed_value(click.view, ids.TESTUSERS_REASON).split())
    problem = reason_problem(reason) if reason else "Say why, please."
    return {ids.TESTUSERS_REASON: problem} if problem else {}


def _typed_form(click: Click) -> TypedForm:
    def typed(block_id: str) -> str:
        return typed_value(click.view, block_id)

    return TypedForm(
        typed(ids.TESTUSERS_FLOW),
        typed(ids.TESTUSERS_CHANGE),
        typed(ids.TESTUSERS_IDENTITIES),
        typed(ids.TESTUSERS_FOR),
        typed(ids.TESTUSERS_REASON),
    )


def _check_form(click: Click) -> Mapping[str, str]:
    """What is wrong at which input of the form."""
    problems = parse_form(_typed_form(click))
    if not isinstance(problems, FormProblems):
        return {}
    found = {
        ids.TESTUSERS_FLOW: problems.flow,
        ids.TESTUSERS_IDENTITIES: problems.identities,
        ids.TESTUSERS_FOR: problems.duration,
        ids.TESTUSERS_REASON: problems.reason,
    }
    return {block_id: problem for block_id, problem in found.items() if problem}


def _command_of_form(click: Click) -> str:
    wish = parse_form(_typed_form(click))
    return "" if isinstance(wish, FormProblems) else as_command(wish)


def _request_of_form(desk: Desk) -> Answer:
    async def request(ask: Ask) -> Message | None:
        """The form, filled in."""
        wish = parse_form(_typed_form(ask.click))
        return None if isinstance(wish, FormProblems) else await _request(ask, desk, wish)

    return request
