"""`/ratelimits`: the usage of each limit, and whether the service blocks us."""

import re
from functools import partial

from bot.commands import RATELIMITS
from bot.errors import Ambiguous, NotFound
from bot.organizations.rules import OrganizationKey
from bot.permissions import Permission
from bot.quotas.messages import ratelimit_detail, ratelimits
from bot.quotas.parse import RatelimitsRequest, parse_ratelimits
from bot.slack.messages import help as help_ui
from bot.slack.messages import ids, paging, replies
from bot.slack.messages.message import Message
from bot.workflows import Workflows
from handlers.helping import helped
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the command, its pages, its menu, `Refresh` and `Check now`."""

    async def answer(context: Context, command: RatelimitsRequest) -> Message:
        """Answer `/ratelimits …`."""
        return await _answer(context, workflows, command)

    async def turn(context: Context) -> Message:
        """Answer `Previous`, `Next`, and `Refresh` of the list."""
        page = paging.page_of(context.value)
        return ratelimits.overview(await workflows.ratelimits.overview(context.person, page))

    async def show(context: Context) -> Message:
        """Answer the menu `Show one …`, and `Refresh` of one organization."""
        key = OrganizationKey.of_path(context.value)
        return ratelimit_detail.detail(await workflows.ratelimits.detail(key))

    async def check(context: Context) -> Message:
        """Answer `Check now`."""
        key = OrganizationKey.of_path(context.value)
        return ratelimit_detail.checked(await workflows.ratelimits.check_at(context.person, key))

    listeners.command(RATELIMITS, parse_ratelimits, answer)
    page = re.compile(rf"{re.escape(ids.RATELIMITS_PAGE)}\.")
    listeners.action(page, Permission.READ, turn, replaces=True, name=ids.RATELIMITS_PAGE)
    listeners.action(ids.RATELIMITS_SHOW, Permission.READ, show)
    listeners.action(ids.RATELIMITS_REFRESH, Permission.READ, show, replaces=True)
    listeners.action(ids.RATELIMITS_CHECK, Permission.REFRESH, check)


async def _answer(context: Context, workflows: Workflows, command: RatelimitsRequest) -> Message:
    if command.form == "help":
        return await helped(context, workflows, partial(help_ui.of_command, RATELIMITS))
    if command.form == "all":
        return ratelimits.overview(await workflows.ratelimits.overview(context.person))
    try:
        return await _answer_about(context, workflows, command)
    except Ambiguous as several:
        if command.form == "plan":
            raise
        chosen = ids.RATELIMITS_CHECK if command.form == "check" else ids.RATELIMITS_SHOW
        return replies.choice(several, chosen)
    except NotFound as none:
        # The word may be a typo of `check` or `plan`.
        kind = command.form if command.form in {"check", "plan"} else None
        raise RATELIMITS.misuse(none.sentence, kind).or_rather(*none.meant) from none


async def _answer_about(
    context: Context, workflows: Workflows, command: RatelimitsRequest
) -> Message:
    if command.form == "check":
        checked = await workflows.ratelimits.check(context.person, command.organization)
        return ratelimit_detail.checked(checked)
    if command.plan is not None:
        plan_set = await workflows.ratelimits.set_plan(
            context.person, command.organization, command.plan
        )
        return ratelimit_detail.plan_set(plan_set)
    return ratelimit_detail.detail(
        await workflows.ratelimits.one(context.person, command.organization)
    )
