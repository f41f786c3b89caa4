"""`/orgs`: all organizations of all data centers."""

import re

from bot.errors import Ambiguous, NotFound, UsageError
from bot.model.calls import CallCause
from bot.parsing.orgs import SHOWING, parse_orgs
from bot.permissions import Permission
from bot.ui import help as help_ui
from bot.ui import ids, orgs, replies
from bot.ui.message import Message
from bot.workflows.desk import Desk
from bot.workflows.directory import REFRESH
from handlers.entry import Ask, Frame


def register(frame: Frame, desk: Desk) -> None:
    """Listen to the command, its pages, its `Refresh` and its menu."""
    pages = orgs.Pages()

    async def command(ask: Ask) -> Message:
        """`/orgs …`."""
        wish = parse_orgs(ask.text)
        if wish.kind == "help":
            return help_ui.of_command("/orgs", lambda one: desk.people.may(ask.person, one))
        if wish.kind == "refresh":
            return await _refresh(ask, desk, pages, orgs.View())
        await desk.people.admit(ask.person, Permission.READ)
        if wish.kind == "show":
            return await _one(ask, desk, wish.words)
        return await _list(ask, desk, pages, orgs.View(wish.words))

    async def turn(ask: Ask) -> Message:
        """`Previous` and `Next`."""
        await desk.people.admit(ask.person, Permission.READ)
        return await _list(ask, desk, pages, orgs.View.of(ask.value))

    async def refresh(ask: Ask) -> Message:
        """`Refresh`."""
        return await _refresh(ask, desk, pages, orgs.View.of(ask.value))

    async def show(ask: Ask) -> Message:
        """The menu `Show one …`."""
        await desk.people.admit(ask.person, Permission.READ)
        return orgs.one(*await desk.directory.at(ask.value, _cause(ask)))

    frame.command("/orgs", command)
    frame.action(re.compile(rf"{re.escape(ids.ORGS_PAGE)}\."), turn, replaces=True)
    frame.action(ids.ORGS_REFRESH, refresh, replaces=True)
    frame.action(ids.ORGS_SHOW, show)


async def _one(ask: Ask, desk: Desk, typed: str) -> Message:
    try:
        return orgs.one(*await desk.directory.find(typed, _cause(ask)))
    except Ambiguous as several:
        return replies.choice(several, ids.ORGS_SHOW)
    except NotFound as none:
        raise UsageError(none.sentence, *SHOWING) from none


async def _list(ask: Ask, desk: Desk, pages: orgs.Pages, view: orgs.View) -> Message:
    directory = await desk.directory.directory(_cause(ask))
    may_refresh = desk.people.may(ask.person, Permission.REFRESH)
    return pages.listing(directory, view, may_refresh=may_refresh)


async def _refresh(ask: Ask, desk: Desk, pages: orgs.Pages, view: orgs.View) -> Message:
    await desk.people.admit(ask.person, Permission.REFRESH)
    cause = CallCause(REFRESH, ask.person.slack_user_id)
    directory = await desk.directory.directory(cause, fresh=True)
    return pages.listing(directory, view, may_refresh=True)


def _cause(ask: Ask) -> CallCause:
    return CallCause("list", ask.person.slack_user_id)
