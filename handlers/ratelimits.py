"""The `/ratelimits` command (API usage, limits and blocks) and the buttons on alerts."""

from bot.commands import RATELIMITS
from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import OrganizationKey
from bot.permissions import Permission
from bot.quotas import messages as ui
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.slack.messages import block_kit, ids, replies
from bot.slack.messages.block_kit import Message
from handlers.listeners import Context, Place, command, listens


@command(RATELIMITS, lambda context: parse_ratelimits(context.text))
async def answer_ratelimits(context: Context, typed: RatelimitsRequest) -> Message:
    """Answer the `/ratelimits` command."""
    workflow, person = context.bot.ratelimits, context.person
    if typed.form == "all":
        return await workflow.overview(person)
    try:
        place = await workflow.find(person, typed.organization, in_part=typed.form == "one")
        if typed.form == "check":
            return await workflow.check(person, place.key)
        if typed.plan is not None:
            return await workflow.set_plan(person, place, typed.plan)
        return await workflow.detail(place.key)
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


@listens("action", ids.RATELIMITS_PAGE, Permission.READ, place=Place.CLICKED)
async def turn(context: Context) -> Message:
    """Handle the `Previous`, `Next` and `Refresh` buttons of the overview."""
    page = block_kit.page_of(context.value)
    return await context.bot.ratelimits.overview(context.person, page)


@listens("action", ids.RATELIMITS_REFRESH, Permission.READ, place=Place.CLICKED)
@listens("action", ids.RATELIMITS_SHOW, Permission.READ)
async def show(context: Context) -> Message:
    """Handle the `Open an organization…` menu and the `Refresh` button of one organization."""
    key = OrganizationKey.of_path(context.value)
    return await context.bot.ratelimits.detail(key)


@listens("action", ids.RATELIMITS_CHECK, Permission.REFRESH)
async def check(context: Context) -> Message:
    """Handle the `Check now` button of one organization."""
    key = OrganizationKey.of_path(context.value)
    return await context.bot.ratelimits.check(context.person, key)


@listens("action", ids.INCIDENT_CHECK, Permission.REFRESH)
async def check_blocked(context: Context) -> Message:
    """Handle `Check now` on an alert: make a test call or, during a block, show stored data."""
    key = await context.bot.alerts.key_of(_incident_id(context))
    return await context.bot.ratelimits.check(context.person, key)


@listens("action", ids.INCIDENT_MUTE, Permission.REFRESH)
async def mute(context: Context) -> Message:
    """Handle the `Mute 1 h` button on an alert."""
    return ui.muted(*await context.bot.alerts.mute(context.person, _incident_id(context)))


@listens("action", ids.INCIDENT_UNMUTE, Permission.REFRESH)
async def unmute(context: Context) -> Message:
    """Handle the `Unmute` button on an alert."""
    return ui.muted(*await context.bot.alerts.mute(context.person, _incident_id(context), 0))


def _incident_id(context: Context) -> int:
    value = context.value
    if not (value.isascii() and value.isdigit() and len(value) < len("1" * 19)):
        raise NotFound("That alert no longer exists.")
    return int(value)
