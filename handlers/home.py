"""The Home tab. Its buttons are those of requests, or run commands."""

from bot.app import Gatehouse
from handlers.bolt import GatehouseApp
from handlers.listening import EVENT
from handlers.payloads import Payload


def register(app: GatehouseApp) -> None:
    """Register the Home tab."""
    app.event("app_home_opened")(app.listening.listener(opened, EVENT))


async def opened(bot: Gatehouse, _person: None, payload: Payload) -> None:
    """Publish the Home tab when someone opens it. Ignore the bot's other tabs."""
    slack_user_id = payload.user_id
    if payload.part("event").get("tab", "home") == "home" and slack_user_id:
        await bot.home.open(slack_user_id)
