"""`/ratelimits`: the usage of each limit, and the service's blocks."""

from functools import partial

from bot.commands import RATELIMITS
from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import OrganizationKey
from bot.permissions import Permission
from bot.quotas.messages import ratelimit_detail, ratelimits
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.slack.messages import block_kit, ids, replies
from bot.slack.messages import help as help_ui
from bot.slack.messages.message import Message
from handlers.interactions import Context
from handlers.listeners import Place, command, helped, listens


@command(RATELIMITS, lambda context: parse_ratelimits(context.text))
async def answer_ratelimits(context: Context, typed: RatelimitsRequest) -> Message:
    """Answer `/ratelimits …`."""
    if typed.form == "help":
        return await helped(context, partial(help_ui.of_command, RATELIMITS))
    if typed.form == "all":
        return ratelimits.overview(await context.bot.ratelimits.overview(context.person))
    try:
        return await _answer_about(context, typed)
    except Ambiguous as several:
        if typed.form == "plan":
            raise
        chosen = ids.RATELIMITS_CHECK if typed.form == "check" else ids.RATELIMITS_SHOW
        return replies.choice(several, chosen)
    except NotFound as none:
        # The word may be a typo of `check` or `plan`.
        kind = typed.form if typed.form in {"check", "plan"} else None
        raise RATELIMITS.misuse(none.sentence, kind).or_rather(*none.meant) from none


async def _answer_about(context: Context, typed: RatelimitsRequest) -> Message:
    workflow, person = context.bot.ratelimits, context.person
    if typed.form == "check":
        return ratelimit_detail.checked(await workflow.check(person, typed.organization))
    if typed.plan is not None:
        plan_set = await workflow.set_plan(person, typed.organization, typed.plan)
        return ratelimit_detail.plan_set(plan_set)
    return ratelimit_detail.detail(await workflow.one(person, typed.organization))


@listens("action", ids.RATELIMITS_PAGE, Permission.READ, place=Place.CLICKED, is_prefix=True)
async def turn(context: Context) -> Message:
    """Answer the list's `Previous`, `Next` and `Refresh`."""
    page = block_kit.page_of(context.value)
    return ratelimits.overview(await context.bot.ratelimits.overview(context.person, page))


@listens("action", ids.RATELIMITS_REFRESH, Permission.READ, place=Place.CLICKED)
@listens("action", ids.RATELIMITS_SHOW, Permission.READ)
async def show(context: Context) -> Message:
    """Handle the menu `Show one …`, and an organization's `Refresh`."""
    key = OrganizationKey.of_path(context.value)
    return ratelimit_detail.detail(await context.bot.ratelimits.detail(key))


@listens("action", ids.RATELIMITS_CHECK, Permission.REFRESH)
async def check(context: Context) -> Message:
    """Answer `Check now`."""
    key = OrganizationKey.of_path(context.value)
    return ratelimit_detail.checked(await context.bot.ratelimits.check_at(context.person, key))
