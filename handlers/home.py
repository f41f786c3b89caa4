"""The Home tab and its three buttons, which run commands."""

from bot.commands import ORGS, RATELIMITS, TESTUSERS
from bot.permissions import Permission
from bot.slack.messages import ids
from bot.workflows import Workflows
from handlers.listeners import Interaction, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to the tab and its buttons."""

    async def opened(interaction: Interaction) -> None:
        """Publish the Home tab when someone opens it; the bot's other tabs don't count."""
        event = interaction.event
        if event.get("tab", "home") == "home" and interaction.slack_user_id:
            is_empty = not event.get("view")
            await workflows.home.open(interaction.slack_user_id, is_empty=is_empty)

    listeners.event("app_home_opened", opened)
    show_form = listeners.same_as(TESTUSERS)
    listeners.action(ids.HOME_TESTUSERS, Permission.REQUEST, show_form, opens_form=True)
    listeners.action(ids.HOME_ORGS, Permission.READ, listeners.same_as(ORGS))
    listeners.action(ids.HOME_RATELIMITS, Permission.READ, listeners.same_as(RATELIMITS))
