"""The Home tab. Its buttons are those of requests, or run commands."""

from bot.app import Gatehouse
from handlers import payloads
from handlers.bolt import GatehouseApp
from handlers.listening import EVENT
from handlers.payloads import Body


def register(app: GatehouseApp) -> None:
    """Register the Home tab."""
    app.event("app_home_opened")(app.listening.listener(opened, EVENT))


async def opened(bot: Gatehouse, _person: None, body: Body) -> None:
    """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
    slack_user_id = payloads.user_id(body)
    if payloads.part(body, "event").get("tab", "home") == "home" and slack_user_id:
        await bot.home.open(slack_user_id)
