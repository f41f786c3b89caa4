"""The parts of the bot that the test-user code depends on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.approvals.rules import FlowRules
from bot.flows.client import Flows
from bot.flows.rules import Flow
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.people import People
from bot.slack.replies import Replies
from bot.store.engine import Database, Transaction


@dataclass(frozen=True)
class Parts:
    """The parts of the bot that this package uses. Tests can pass a smaller object.

    `refresh_home` schedules a person's Home tab to be published again. `new_id` returns a new
    unique ID for a request or a job.
    """

    settings: Settings
    clock: Clock
    database: Database
    people: People
    flows: Flows
    slack: SlackClient
    replies: Replies
    metrics: Metrics
    refresh_home: Callable[[Transaction, str], Awaitable[None]]
    new_id: Callable[[], str]


def policy_of(bot: Parts, flow: Flow) -> FlowRules:
    """Return the rules in force for a flow's requests."""
    return bot.people.policy.of_flow(flow.sid)
