"""The parts of the approvals: what listeners call, what jobs run, and what the outbox sends."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.slack.sender import Renderer
from bot.store.engine import Transaction
from bot.store.job_loop import Runner
from bot.testusers.applying import Applying
from bot.testusers.asking import Asking
from bot.testusers.card_links import CardLinks
from bot.testusers.deciding import Deciding
from bot.testusers.extending import Extending
from bot.testusers.interactions import INTERACTION, UNDO, ReplyPort, StoredInteractions
from bot.testusers.presets import Presets
from bot.testusers.reading import Reading
from bot.testusers.refusals import REFUSED, Refusals
from bot.testusers.rendering import RequestMessages
from bot.testusers.setup import Setup
from bot.testusers.timers import Timers
from bot.testusers.transitions import (
    APPLY,
    CARD,
    ENDING,
    ESCALATION,
    FAILURE,
    OUTCOME,
    REMINDER,
    TIMER,
)


@dataclass(frozen=True)
class Testusers:
    """The parts that the listeners of `/testusers` call."""

    __test__ = False  # for pytest, which takes the name for a test's

    approvals_channel: str
    asking: Asking
    deciding: Deciding
    reading: Reading
    interactions: StoredInteractions
    presets: Presets
    card_links: CardLinks
    extending: Extending


@dataclass(frozen=True)
class TestusersParts:
    """All parts: `runners` go to the job loop by kind, `renderers` to the outbox by kind.

    `card_kinds` are the kinds that show the state of a single card; `plans` refresh stored work
    after a start and create missing jobs.
    """

    __test__ = False

    workflows: Testusers
    runners: Mapping[str, Runner]
    renderers: Mapping[str, Renderer]
    card_kinds: Collection[str]
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]


def testusers_parts(
    setup: Setup, replies: ReplyPort, count: Callable[[str, str], None], card_links: CardLinks
) -> TestusersParts:
    """Put the parts together; `count` takes a click's name and its outcome."""
    interactions, timers, messages = (
        StoredInteractions(setup, replies, count),
        Timers(setup),
        RequestMessages(setup, card_links),
    )
    workflows = Testusers(
        setup.rules.approvals_channel,
        Asking(setup),
        Deciding(setup),
        Reading(setup),
        interactions,
        Presets(setup),
        card_links,
        Extending(setup),
    )
    runners: dict[str, Runner] = {
        APPLY: Applying(setup).run,
        INTERACTION: interactions.run,
        UNDO: interactions.run,
        TIMER: timers.run,
    }
    renderers: dict[str, Renderer] = {
        CARD: messages.card,
        REMINDER: messages.reminder,
        ESCALATION: messages.escalation,
        FAILURE: messages.failure,
        OUTCOME: messages.outcome,
        ENDING: messages.ending,
        REFUSED: Refusals(setup).message,
    }
    return TestusersParts(workflows, runners, renderers, {CARD}, (messages.plan, timers.plan))
