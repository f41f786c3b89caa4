"""The Home tab, its buttons, and the shortcuts that open the form for changing test users."""

from bot.permissions import Permission
from bot.slack.messages import ids
from bot.testusers.asking import require_asking
from bot.testusers.messages import forms
from bot.testusers.parse.form import Prefilled, mentioned_identities
from handlers.listeners import Context, Place, listens
from handlers.orgs import answer_orgs
from handlers.ratelimits import answer_ratelimits
from handlers.testusers import answer_testusers


@listens("event", "app_home_opened", None, place=Place.NOWHERE)
async def opened(context: Context) -> None:
    """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
    event, slack_user_id = context.interaction.event, context.interaction.slack_user_id
    if event.get("tab", "home") == "home" and slack_user_id:
        await context.bot.home.open(slack_user_id)


@listens("shortcut", ids.ADD_AS_TEST_USERS, Permission.REQUEST, place=Place.FORM)
async def add_mentioned(context: Context) -> None:
    """Handle the `Add as test users` shortcut by opening the form with the message's identities."""
    await require_asking(context.bot, context.person)
    mentioned = Prefilled(lines=mentioned_identities(context.text))
    form = forms.change_form(context.interaction.response_url, mentioned)
    await context.bot.slack.open_view(context.interaction.trigger_id, form)


listens("shortcut", ids.CHANGE_TEST_USERS, Permission.REQUEST, place=Place.FORM)(answer_testusers)
listens("action", ids.HOME_TESTUSERS, Permission.REQUEST, place=Place.FORM)(answer_testusers)
listens("action", ids.HOME_ORGS, Permission.READ)(answer_orgs)
listens("action", ids.HOME_RATELIMITS, Permission.READ)(answer_ratelimits)
