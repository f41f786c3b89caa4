"""The parts of the bot that changes to test users need."""

from typing import Protocol

from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.people import People
from bot.slack.replies import Replies
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.testusers.client import Flows


class Parts(Protocol):
    """`bot.app.Gatehouse`, or the parts of it that a test needs."""

    settings: Settings
    clock: Clock
    database: Database
    audit: AuditStore
    people: People
    flows: Flows
    slack: SlackClient
    replies: Replies
    metrics: Metrics

    def new_id(self) -> str:
        """Return an id for a request or a job."""
        ...
