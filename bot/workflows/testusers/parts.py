"""The parts of the approvals, put together: what listeners ask, what jobs run, what is sent."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from bot.background.jobs import Runner
from bot.background.outbox import Renderer
from bot.dataclass import dataclass
from bot.store.engine import Transaction
from bot.workflows.testusers.applying import Applying
from bot.workflows.testusers.asking import Asking
from bot.workflows.testusers.card_links import CardLinks
from bot.workflows.testusers.deadlines import Deadlines
from bot.workflows.testusers.deciding import Deciding
from bot.workflows.testusers.endings import ENDING, Endings
from bot.workflows.testusers.interactions import (
    INTERACTION,
    UNDO,
    ReplyPort,
    StoredInteractions,
)
from bot.workflows.testusers.presets import Presets
from bot.workflows.testusers.reading import Reading
from bot.workflows.testusers.rendering import RequestMessages
from bot.workflows.testusers.setup import Setup
from bot.workflows.testusers.transitions import (
    APPLY,
    CARD,
    ESCALATE,
    ESCALATION,
    EXPIRE,
    FAILURE,
    OUTCOME,
    REMIND,
    REMINDER,
    START,
    UNPOSTED_JOB,
)


@dataclass(frozen=True)
class Testusers:
    """What the listeners of `/testusers` ask."""

    __test__ = False  # for pytest, which takes the name for a test's

    approvals_channel: str
    asking: Asking
    deciding: Deciding
    reading: Reading
    interactions: StoredInteractions
    presets: Presets
    card_links: CardLinks


@dataclass(frozen=True)
class TestusersParts:
    """All of it: `runners` go to the job loop by kind, `renderers` to the outbox by kind.

    `card_kinds` are the kinds that say how one card stands; `plans` see to what a start changes,
    and to the jobs that have to be there.
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
    interactions, deadlines, messages, endings = (
        StoredInteractions(setup, replies, count),
        Deadlines(setup),
        RequestMessages(setup, card_links),
        Endings(setup),
    )
    workflows = Testusers(
        setup.rules.approvals_channel,
        Asking(setup),
        Deciding(setup),
        Reading(setup),
        interactions,
        Presets(setup),
        card_links,
    )
    runners: dict[str, Runner] = {
        APPLY: Applying(setup).run,
        INTERACTION: interactions.run,
        UNDO: interactions.run,
        EXPIRE: deadlines.expire,
        REMIND: deadlines.remind,
        UNPOSTED_JOB: deadlines.unposted,
        START: deadlines.start,
        ENDING: endings.run,
        ESCALATE: deadlines.escalate,
    }
    renderers: dict[str, Renderer] = {
        CARD: messages.card,
        REMINDER: messages.reminder,
        ESCALATION: messages.escalation,
        FAILURE: messages.failure,
        OUTCOME: messages.outcome,
        ENDING: endings.message,
    }
    return TestusersParts(workflows, runners, renderers, {CARD}, (messages.plan, endings.plan))
