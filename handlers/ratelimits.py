"""The `/ratelimits` command (API usage, limits and blocks) and the buttons on alerts."""

from bot.app import Gatehouse
from bot.commands import RATELIMITS
from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import OrganizationKey
from bot.permissions import Permission, Person
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.slack.messages import ids, replies
from bot.slack.messages.block_kit import Message, Wanted
from handlers.bolt import GatehouseApp
from handlers.listening import TURN, Needs
from handlers.payloads import Payload
from handlers.sharing import with_share


def register(app: GatehouseApp) -> None:
    """Register `/ratelimits`, the buttons and the menu of its answers, and those on alerts."""
    listener = app.listening.listener
    checks = Needs(Permission.REFRESH)
    app.command("/ratelimits")(app.listening.command(RATELIMITS, parse_ratelimits, answer))
    app.action(ids.row_of(ids.RATELIMITS_PAGE))(listener(turn, TURN))
    app.action(ids.RATELIMITS_REFRESH)(listener(show, TURN))
    app.action(ids.RATELIMITS_SHOW)(listener(show, Needs(Permission.READ)))
    app.action(ids.RATELIMITS_CHECK)(listener(check, checks))
    app.action(ids.INCIDENT_MUTE)(listener(mute, checks))


async def answer(
    bot: Gatehouse, person: Person, typed: RatelimitsRequest, payload: Payload
) -> Message:
    """Answer the `/ratelimits` command."""
    ratelimits = bot.inventory.ratelimits
    if typed.form == "all":
        return await ratelimits.overview(person)
    try:
        place = await ratelimits.find(person, typed.organization, in_part=typed.form == "one")
        if typed.form == "check":
            return await ratelimits.check(person, place.key)
        if typed.plan is not None:
            return await ratelimits.set_plan(person, place, typed.plan)
        return await _detail(bot, place.key, payload)
    except Ambiguous as several:
        if typed.form == "plan":
            raise
        chosen = ids.RATELIMITS_CHECK if typed.form == "check" else ids.RATELIMITS_SHOW
        return replies.choice(several, chosen)
    except NotFound as none:
        # The word may be a typo for `check` or `plan`.
        kind = typed.form if typed.form in {"check", "plan"} else None
        error = RATELIMITS.misuse(none.sentence, kind)
        raise error.suggesting(none.unknown, none.closest) from none


async def turn(bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle the `Previous`, `Next` and `Refresh` buttons of the overview."""
    return await bot.inventory.ratelimits.overview(person, Wanted.of(payload.value))


async def show(bot: Gatehouse, _person: Person, payload: Payload) -> Message:
    """Handle the `Open an organization…` menu and the `Refresh` button of one organization."""
    return await _detail(bot, OrganizationKey.of_path(payload.value), payload)


async def _detail(bot: Gatehouse, key: OrganizationKey, payload: Payload) -> Message:
    detail = await bot.inventory.ratelimits.detail(key)
    return with_share(detail, f"/ratelimits {key.path}", payload)


async def check(bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle `Check now`: make a test call or, during a block, show stored data."""
    key = OrganizationKey.of_path(payload.value)
    return await bot.inventory.ratelimits.check(person, key)


async def mute(bot: Gatehouse, person: Person, payload: Payload) -> Message:
    """Handle the `Mute 1 h` button on an alert."""
    return await bot.inventory.alerts.mute(person, payload.value)
