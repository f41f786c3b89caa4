"""The parts of the bot that the test-user code depends on."""

from typing import Protocol

from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.people import People
from bot.slack.replies import Replies
from bot.store.engine import Database, Transaction
from bot.testusers.client import Flows


class Parts(Protocol):
    """The parts of `bot.app.Gatehouse` that this package uses. Tests can pass a smaller object."""

    settings: Settings
    clock: Clock
    database: Database
    people: People
    flows: Flows
    slack: SlackClient
    replies: Replies
    metrics: Metrics

    async def refresh_home(self, tx: Transaction, slack_user_id: str) -> None:
        """Schedule the person's Home tab to be published again, if it's open."""
        ...

    def new_id(self) -> str:
        """Return a new unique ID for a request or a job."""
        ...
