"""The Home tab, its buttons, and the shortcuts that open the form for changing test users."""

from slack_bolt.async_app import AsyncApp

from bot.app import Gatehouse
from bot.commands import ORGS, RATELIMITS, TESTUSERS, Command
from bot.permissions import Permission, Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from bot.testusers.asking import require_asking
from bot.testusers.messages import forms
from bot.testusers.parse.form import Prefilled, mentioned_identities
from handlers import payloads
from handlers.commands import Commands
from handlers.listening import EVENT, LazyRunner, Listener, Needs, acknowledge
from handlers.payloads import Body
from handlers.progress import AnswerOnly


def register(app: AsyncApp, bot: Gatehouse, commands: Commands, runner: LazyRunner) -> None:
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
            return await commands.run(described.name, "", person, body)

        return run

    reads, opens_form = Needs(Permission.READ), Needs(Permission.REQUEST, AnswerOnly)
    store_opened = runner.store_event(opened)
    app.event("app_home_opened", middleware=[EVENT])(ack=store_opened, lazy=[])
    open_form = command(TESTUSERS)
    app.action(ids.HOME_TESTUSERS, middleware=[opens_form])(ack=acknowledge, lazy=[open_form])
    app.action(ids.HOME_ORGS, middleware=[reads])(ack=acknowledge, lazy=[command(ORGS)])
    app.action(ids.HOME_RATELIMITS, middleware=[reads])(ack=acknowledge, lazy=[command(RATELIMITS)])
    app.shortcut(ids.CHANGE_TEST_USERS, middleware=[opens_form])(ack=acknowledge, lazy=[open_form])
    app.shortcut(ids.ADD_AS_TEST_USERS, middleware=[opens_form])(
        ack=acknowledge, lazy=[add_mentioned]
    )
