"""Registers all listeners with the Bolt app."""

from importlib import import_module

from bot.app import Gatehouse
from bot.approvals.rules import Act
from bot.commands import COMMANDS
from bot.slack.messages import ids
from handlers import conversation
from handlers.bolt import GatehouseApp
from handlers.testusers import PAGES

# The names in metrics. Some IDs of inputs are among them, which does no harm.
NAMES = frozenset(
    {
        "slack.request",
        "message",
        "app_home_opened",
        *(command.name for command in COMMANDS),
        *(f"{ids.TESTUSERS_ACT}{act}" for act in Act),
        *(ids.testusers_page(form) for form in PAGES),
        *(value for name, value in vars(ids).items() if name.isupper()),
    }
)


def slack_app(bot: Gatehouse) -> GatehouseApp:
    """Return the Bolt app with every listener. Bolt uses the first one that matches a request."""
    app = GatehouseApp(bot)
    for command in COMMANDS:
        # The listeners of `/orgs` are in `handlers/orgs.py`.
        import_module(f"handlers.{command.name.removeprefix('/')}").register(app)
    conversation.register(app)
    app.require_needs()
    bot.metrics.expect_commands(NAMES)
    return app
