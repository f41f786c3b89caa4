"""`/ratelimits`: how much of each limit is used, and whether the service blocks us."""

import re

from bot.errors import Ambiguous, NotFound, UsageError
from bot.model.organization import OrganizationKey
from bot.parsing.ratelimits import USAGE, RatelimitsRequest, parse_ratelimits
from bot.permissions import Permission
from bot.ui import help as help_ui
from bot.ui import ids, paging, ratelimit_detail, ratelimits, replies
from bot.ui.message import Message
from bot.workflows.desk import Desk
from handlers.entry import Ask, Frame

_NEEDS = {
    "help": Permission.ASK_FOR_HELP,
    "check": Permission.REFRESH,
    "plan": Permission.SET_PLAN,
}


def register(frame: Frame, desk: Desk) -> None:
    """Listen to the command, its pages, its menu, `Refresh` and `Check now`."""

    async def command(ask: Ask) -> Message:
        """`/ratelimits …`."""
        wish = parse_ratelimits(ask.text)
        await desk.people.admit(ask.person, _NEEDS.get(wish.kind, Permission.READ))
        return await _answer(ask, desk, wish)

    async def turn(ask: Ask) -> Message:
        """`Previous`, `Next`, and `Refresh` of the list."""
        await desk.people.admit(ask.person, Permission.READ)
        found = await desk.ratelimits.overview(ask.person)
        return ratelimits.overview(found, paging.page_of(ask.value))

    async def show(ask: Ask) -> Message:
        """The menu `Show one …`, and `Refresh` of one."""
        await desk.people.admit(ask.person, Permission.READ)
        key = OrganizationKey.of_path(ask.value)
        return ratelimit_detail.detail(await desk.ratelimits.detail(key))

    async def check(ask: Ask) -> Message:
        """`Check now`."""
        await desk.people.admit(ask.person, Permission.REFRESH)
        key = OrganizationKey.of_path(ask.value)
        return ratelimit_detail.checked(await desk.ratelimits.check_at(ask.person, key))

    frame.command("/ratelimits", command)
    frame.action(re.compile(rf"{re.escape(ids.RATELIMITS_PAGE)}\."), turn, replaces=True)
    frame.action(ids.RATELIMITS_SHOW, show)
    frame.action(ids.RATELIMITS_REFRESH, show, replaces=True)
    frame.action(ids.RATELIMITS_CHECK, check)


async def _answer(ask: Ask, desk: Desk, wish: RatelimitsRequest) -> Message:
    if wish.kind == "help":
        return help_ui.of_command("/ratelimits", lambda one: desk.people.may(ask.person, one))
    if wish.kind == "all":
        return ratelimits.overview(await desk.ratelimits.overview(ask.person))
    try:
        return await _answer_about(ask, desk, wish)
    except Ambiguous as several:
        if wish.kind == "plan":
            raise
        chosen = ids.RATELIMITS_CHECK if wish.kind == "check" else ids.RATELIMITS_SHOW
        return replies.choice(several, chosen)
    except NotFound as none:
        # The word may have been meant for `check` or `plan`.
        raise UsageError(none.sentence, *USAGE.get(wish.kind, USAGE["all"])) from none


async def _answer_about(ask: Ask, desk: Desk, wish: RatelimitsRequest) -> Message:
    if wish.kind == "check":
        checked = await desk.ratelimits.check(ask.person, wish.organization)
        return ratelimit_detail.checked(checked)
    if wish.plan is not None:
        plan_set = await desk.ratelimits.set_plan(ask.person, wish.organization, wish.plan)
        return ratelimit_detail.plan_set(plan_set)
    return ratelimit_detail.detail(await desk.ratelimits.one(ask.person, wish.organization))
