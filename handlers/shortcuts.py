"""Shortcuts: the form of a change, empty or with the people that a message mentions."""

from bot.commands import TESTUSERS
from bot.parsing.mentioned import mentioned_identities
from bot.permissions import Permission
from bot.ui import ids
from bot.ui.testusers import forms
from bot.workflows.workflows import Workflows
from handlers.listeners import Context, Listeners


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Listen to both shortcuts."""

    async def add_mentioned(context: Context) -> None:
        """`Add as test users`, in the menu of a message."""
        await workflows.testusers.asking.require(context.person)
        interaction = context.interaction
        identities = mentioned_identities(interaction.text)
        form = forms.change_form(interaction.response_url, identities)
        await workflows.modals.open_view(interaction.trigger_id, form)

    show_form = listeners.same_as(TESTUSERS)
    listeners.shortcut(ids.CHANGE_TEST_USERS, Permission.REQUEST, show_form)
    listeners.shortcut(ids.ADD_AS_TEST_USERS, Permission.REQUEST, add_mentioned)
