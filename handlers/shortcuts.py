"""Shortcuts that open the form, empty or with the people mentioned in a message."""

from bot.commands import TESTUSERS
from bot.permissions import Permission
from bot.slack.messages import ids
from bot.testusers.messages import forms
from bot.testusers.messages.buttons import Prefilled
from bot.testusers.parse.identities import mentioned_identities
from bot.workflows import Workflows
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to both shortcuts."""

    async def add_mentioned(context: Context) -> None:
        """Answer `Add as test users` in the menu of a message."""
        await workflows.testusers.asking.require(context.person)
        interaction = context.interaction
        mentioned = Prefilled(unsure=mentioned_identities(interaction.text))
        form = forms.change_form(interaction.response_url, mentioned)
        await workflows.modals.open_view(interaction.trigger_id, form)

    show_form = listeners.same_as(TESTUSERS)
    listeners.shortcut(ids.CHANGE_TEST_USERS, Permission.REQUEST, show_form)
    listeners.shortcut(ids.ADD_AS_TEST_USERS, Permission.REQUEST, add_mentioned)
