"""The Home tab, its buttons, and the shortcuts that open the form for changing test users."""

from bot.app import Gatehouse
from bot.commands import ORGS, RATELIMITS, TESTUSERS, Command
from bot.permissions import Permission, Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from bot.testusers.asking import require_asking
from bot.testusers.messages import forms
from bot.testusers.parse.form import Prefilled, mentioned_identities
from handlers import payloads
from handlers.bolt import GatehouseApp
from handlers.listening import EVENT, EVENT_SECONDS, Listener, Needs, acknowledge
from handlers.payloads import Body
from handlers.progress import Place


def register(app: GatehouseApp, bot: Gatehouse) -> None:
    """Register the Home tab, its buttons and the shortcuts."""

    async def opened(event: Body) -> None:
        """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
        slack_user_id = payloads.text(event, "user")
        if event.get("tab", "home") == "home" and slack_user_id:
            await bot.home.open(slack_user_id)

    async def add_mentioned(person: Person, body: Body) -> None:
        """Open the form with the message's identities, for the shortcut `Add as test users`."""
        await require_asking(bot.testusers, person)
        message = payloads.message_text(payloads.part(body, "message"))
        mentioned = Prefilled(lines=mentioned_identities(message))
        form = forms.change_form(payloads.response_url(body), mentioned)
        await bot.slack.client.open_view(payloads.text(body, "trigger_id"), form)

    def command(described: Command) -> Listener:
        async def run(person: Person, body: Body) -> Message | None:
            return await app.commands.run(described.name, "", person, body)

        return run

    reads = Needs(Permission.READ)
    opens_form = Needs(Permission.REQUEST, Place.ANSWER_ONLY)
    open_form = command(TESTUSERS)
    store_opened = app.runner.before_acknowledging(opened, EVENT_SECONDS)
    app.event("app_home_opened", middleware=[EVENT])(store_opened)
    for action_id, needs, listener in (
        (ids.HOME_TESTUSERS, opens_form, open_form),
        (ids.HOME_ORGS, reads, command(ORGS)),
        (ids.HOME_RATELIMITS, reads, command(RATELIMITS)),
    ):
        app.action(action_id, middleware=[needs])(ack=acknowledge, lazy=[listener])
    for callback_id, listener in (
        (ids.CHANGE_TEST_USERS, open_form),
        (ids.ADD_AS_TEST_USERS, add_mentioned),
    ):
        app.shortcut(callback_id, middleware=[opens_form])(ack=acknowledge, lazy=[listener])
