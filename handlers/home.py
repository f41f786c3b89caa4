"""The Home tab, and its buttons that run commands."""

from bot.app import Gatehouse
from bot.commands import ORGS, RATELIMITS, Command
from bot.permissions import Permission, Person
from bot.slack.messages import ids
from bot.slack.messages.block_kit import Message
from handlers import payloads
from handlers.bolt import GatehouseApp
from handlers.listening import EVENT, EVENT_SECONDS, Listener, Needs, acknowledge
from handlers.payloads import Body


def register(app: GatehouseApp, bot: Gatehouse) -> None:
    """Register the Home tab and its buttons."""

    async def opened(event: Body) -> None:
        """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
        slack_user_id = payloads.text(event, "user")
        if event.get("tab", "home") == "home" and slack_user_id:
            await bot.home.open(slack_user_id)

    def command(described: Command) -> Listener:
        async def run(person: Person, body: Body) -> Message | None:
            return await app.commands.run(described.name, "", person, body)

        return run

    reads = Needs(Permission.READ)
    store_opened = app.runner.before_acknowledging(opened, EVENT_SECONDS)
    app.event("app_home_opened", middleware=[EVENT])(store_opened)
    for action_id, described in ((ids.HOME_ORGS, ORGS), (ids.HOME_RATELIMITS, RATELIMITS)):
        app.action(action_id, middleware=[reads])(ack=acknowledge, lazy=[command(described)])
