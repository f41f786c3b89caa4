"""The `/orgs` command: the organizations in all data centers."""

from bot.commands import ORGS
from bot.errors import Ambiguous, NotFound
from bot.organizations import messages as orgs
from bot.organizations.parse import OrgsRequest, parse_orgs
from bot.permissions import Permission
from bot.services.calls import LIST, REFRESH, CallCause
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids, replies
from bot.slack.messages.block_kit import Message
from handlers.listeners import Context, Place, command, listens


@command(ORGS, lambda context: parse_orgs(context.text))
async def answer_orgs(context: Context, typed: OrgsRequest) -> Message:
    """Answer the `/orgs` command."""
    if typed.form == "refresh":
        return await _refreshed(context, orgs.OrgsPage())
    if typed.form == "list":
        return await _listed(context, orgs.OrgsPage(typed.words))
    try:
        return await _shown(context, typed.words)
    except Ambiguous as several:
        return replies.choice(several, ids.ORGS_SHOW)
    except NotFound as none:
        error = ORGS.misuse(none.sentence, "show")
        raise error.suggesting(none.unknown, none.closest) from none


@listens("action", ids.ORGS_PAGE, Permission.READ, place=Place.CLICKED)
async def turn(context: Context) -> Message:
    """Handle the `Previous` and `Next` buttons of the organization list."""
    return await _listed(context, orgs.OrgsPage.of(context.value))


@listens("action", ids.ORGS_REFRESH, Permission.REFRESH, place=Place.CLICKED)
async def refresh(context: Context) -> Message:
    """Handle the `Refresh` button of the organization list."""
    return await _refreshed(context, orgs.OrgsPage.of(context.value))


@listens("action", ids.ORGS_SHOW, Permission.READ)
async def show(context: Context) -> Message:
    """Handle the `Open an organization…` menu."""
    return await _shown(context, context.value)


async def _shown(context: Context, name: str) -> Message:
    directory = await context.bot.directory.directory(_cause(context))
    try:
        place = directory.find(name)
    except NotFound:
        directory = await context.bot.directory.directory(_cause(context), look_again=True)
        place = directory.find(name)
    report = directory.report_on(place.data_center)
    return orgs.one(place, report, may_check=_may_refresh(context))


async def _listed(context: Context, wanted: orgs.OrgsPage) -> Message:
    directory = await context.bot.directory.directory(_cause(context))
    if wanted.words and not directory.matching(wanted.words):
        directory = await context.bot.directory.directory(_cause(context), look_again=True)
    message = orgs.listing(directory, wanted, may_refresh=_may_refresh(context))
    if not wanted.words or directory.matching(wanted.words):
        return message
    first, _, rest = wanted.words.partition(" ")
    meant = []
    if close := help_ui.meant_subcommand("/orgs", first):
        command_line = f"/orgs {close} {rest}".strip()
        meant.append((command_line, command_line))
    near = directory.closest(wanted.words)
    meant += [(label, f"/orgs show {path}") for path, label in near.items()]
    return replies.with_commands(message, meant)


async def _refreshed(context: Context, wanted: orgs.OrgsPage) -> Message:
    cause = CallCause(REFRESH, context.person.slack_user_id)
    directory = await context.bot.directory.directory(cause, fresh=True)
    return orgs.listing(directory, wanted, may_refresh=True)


def _may_refresh(context: Context) -> bool:
    """Return True if the person may call the service to reload the list or test an organization."""
    return context.bot.people.may(context.person, Permission.REFRESH)


def _cause(context: Context) -> CallCause:
    return CallCause(LIST, context.person.slack_user_id)
