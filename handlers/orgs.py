"""The `/orgs` command: the organizations in all data centers."""

from functools import partial

from bot.app import Gatehouse
from bot.commands import ORGS
from bot.errors import Ambiguous, NotFound
from bot.organizations import messages as ui
from bot.organizations.parse import OrgsRequest, parse_orgs
from bot.permissions import Permission, Person
from bot.services.calls import LIST, REFRESH, CallCause
from bot.slack.messages import ids, replies
from bot.slack.messages.block_kit import Message, Wanted
from handlers.bolt import GatehouseApp
from handlers.listening import TURN, AnswerAt, Needs
from handlers.payloads import Payload
from handlers.sharing import with_share


def register(app: GatehouseApp) -> None:
    """Register `/orgs` and the buttons and the menu of its answers."""
    listener = app.listening.listener
    refreshes = Needs(Permission.REFRESH, AnswerAt.CLICKED)
    app.command("/orgs")(app.listening.command(ORGS, parse_orgs, answer))
    app.action(ids.row_of(ids.ORGS_PAGE))(listener(partial(turn, LIST), TURN))
    app.action(ids.ORGS_REFRESH)(listener(partial(turn, REFRESH), refreshes))
    app.action(ids.ORGS_SHOW)(listener(show, Needs(Permission.READ)))


async def answer(bot: Gatehouse, person: Person, typed: OrgsRequest, payload: Payload) -> Message:
    """Answer the `/orgs` command."""
    if typed.form == "refresh":
        return await _listed(REFRESH, bot, person, Wanted())
    if typed.form == "list":
        return await _listed(LIST, bot, person, Wanted(typed.words))
    try:
        return await _shown(bot, person, typed.words, payload)
    except Ambiguous as several:
        return replies.choice(several, ids.ORGS_SHOW)
    except NotFound as none:
        error = ORGS.misuse(none.sentence, "show")
        raise error.suggesting(none.unknown, none.closest) from none


async def turn(kind: str, bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle the `Previous`, `Next` and `Refresh` buttons of the organization list."""
    return await _listed(kind, bot, person, Wanted.of(payload.value))


async def show(bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle the `Open an organization…` menu."""
    return await _shown(bot, person, payload.value, payload)


async def _shown(bot: Gatehouse, person: Person, name: str, payload: Payload) -> Message:
    directory = await bot.inventory.directory.directory(CallCause(LIST, person.slack_user_id))
    place = directory.find(name)
    message = ui.one(place, directory.report_on(place.data_center))
    return with_share(message, f"/orgs show {place.key.path}", payload)


async def _listed(kind: str, bot: Gatehouse, person: Person, wanted: Wanted) -> Message:
    directory = await bot.inventory.directory.directory(CallCause(kind, person.slack_user_id))
    may_refresh = bot.slack.people.may(person, Permission.REFRESH)
    message = ui.listing(directory, wanted, may_refresh=may_refresh)
    if not wanted.text or directory.matching(wanted.text):
        return message
    meant = []
    if close := ORGS.meant(wanted.text.split()):
        _, _, rest = wanted.text.partition(" ")
        command_line = f"/orgs {close} {rest}".strip()
        meant.append((command_line, command_line))
    near = directory.closest(wanted.text)
    meant += [(label, f"/orgs show {path}") for path, label in near.items()]
    return replies.with_commands(message, meant)
