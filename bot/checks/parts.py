"""The parts of the bot that the checks use."""

from typing import Protocol

from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.watchdog import Watchdog
from bot.services.http import ServiceHttp
from bot.services.seen import ServiceLog
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.store.engine import Database
from bot.tasks import Tasks


class Parts(Protocol):
    """`bot.app.Gatehouse`, or the parts of it that a test needs."""

    settings: Settings
    clock: Clock
    database: Database
    slack: SlackClient
    http: ServiceHttp
    tasks: Tasks
    metrics: Metrics
    services: ServiceLog
    watchdog: Watchdog
