"""`/orgs`: all organizations of all data centers."""

import re
from functools import partial

from bot.commands import ORGS
from bot.errors import Ambiguous, NotFound
from bot.organizations import messages as orgs
from bot.organizations.directory import REFRESH
from bot.organizations.parse import OrgsRequest, parse_orgs
from bot.organizations.rules import Directory
from bot.permissions import Permission
from bot.services.calls import CallCause
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids, replies
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command, its pages, its `Refresh` and its menu."""
    pages = orgs.Pages()

    async def answer(context: Context, command: OrgsRequest) -> Message:
        """Answer `/orgs …`."""
        if command.form == "help":
            return await helped(context, workflows, partial(help_ui.of_command, ORGS))
        if command.form == "refresh":
            return await _refresh(context, workflows, pages, orgs.OrgsPage())
        if command.form == "show":
            return await _one(context, workflows, command.words)
        return await _list(context, workflows, pages, orgs.OrgsPage(command.words))

    async def turn(context: Context) -> Message:
        """Answer the buttons that turn pages."""
        return await _list(context, workflows, pages, orgs.OrgsPage.of(context.value))

    async def refresh(context: Context) -> Message:
        """Answer `Refresh`."""
        return await _refresh(context, workflows, pages, orgs.OrgsPage.of(context.value))

    async def show(context: Context) -> Message:
        """Answer the menu `Show one …`."""
        place, report = await workflows.directory.at(context.value, _cause(context))
        return orgs.one(place, report, may_check=_may_refresh(context, workflows))

    listeners.command(ORGS, parse_orgs, answer)
    page = re.compile(rf"{re.escape(ids.ORGS_PAGE)}\.")
    listeners.action(page, Permission.READ, turn, replaces=True, name=ids.ORGS_PAGE)
    listeners.action(ids.ORGS_REFRESH, Permission.REFRESH, refresh, replaces=True)
    listeners.action(ids.ORGS_SHOW, Permission.READ, show)


async def _one(context: Context, workflows: Workflows, typed: str) -> Message:
    try:
        place, report = await workflows.directory.find(typed, _cause(context))
        return orgs.one(place, report, may_check=_may_refresh(context, workflows))
    except Ambiguous as several:
        return replies.choice(several, ids.ORGS_SHOW)
    except NotFound as none:
        raise ORGS.misuse(none.sentence, "show").or_rather(*none.meant) from none


async def _list(
    context: Context, workflows: Workflows, pages: orgs.Pages, wanted: orgs.OrgsPage
) -> Message:
    directory = await workflows.directory.directory(_cause(context), is_typed=context.is_typed)
    message = pages.listing(directory, wanted, may_refresh=_may_refresh(context, workflows))
    if not wanted.words or directory.matching(wanted.words):
        return message
    return replies.with_commands(message, _meant(directory, wanted.words))


def _meant(directory: Directory, words: str) -> list[tuple[str, str]]:
    """Return likely corrections of a filter without matches, as (label, command)."""
    first, _, rest = words.partition(" ")
    close = help_ui.meant_subcommand("/orgs", first)
    commands = [(f"/orgs {close} {rest}".strip(), f"/orgs {close} {rest}".strip())] if close else []
    return [
        *commands,
        *(
            (organization.label, f"/orgs show {organization.words}")
            for organization in directory.meant(words)
        ),
    ]


async def _refresh(
    context: Context, workflows: Workflows, pages: orgs.Pages, wanted: orgs.OrgsPage
) -> Message:
    cause = CallCause(REFRESH, context.person.slack_user_id)
    directory = await workflows.directory.directory(cause, fresh=True, is_typed=context.is_typed)
    return pages.listing(directory, wanted, may_refresh=True)


def _may_refresh(context: Context, workflows: Workflows) -> bool:
    """Return True if the person may cause a service call: to reload the list, or as a test."""
    return workflows.people.may(context.person, Permission.REFRESH)


def _cause(context: Context) -> CallCause:
    return CallCause("list", context.person.slack_user_id)
