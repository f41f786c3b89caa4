"""The parts of `/testusers` for listeners, jobs and the outbox."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.slack.sender import Renderer
from bot.store.engine import Transaction
from bot.store.job_loop import Runner
from bot.testusers.applying import Applying
from bot.testusers.card_links import CardLinks
from bot.testusers.interactions import INTERACTION, UNDO, ReplyPort, StoredInteractions
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
    REFUSED,
    REMINDER,
    TIMER,
)


@dataclass(frozen=True)
class Testusers:
    """The parts of `/testusers`.

    Attributes:
        setup: The parts that all steps share.
        interactions: Stores clicks.
        card_links: Finds links to cards.
        runners: The functions that the job loop runs, by kind.
        renderers: The functions that render outbox messages, by kind; `card_kinds` show a card's
            state.
        plans: The functions that refresh stored work after startup and create missing jobs.
    """

    __test__ = False  # pytest would take this class for a test

    setup: Setup
    interactions: StoredInteractions
    card_links: CardLinks
    runners: Mapping[str, Runner]
    renderers: Mapping[str, Renderer]
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]
    card_kinds: Collection[str] = (CARD,)


def testusers_parts(
    setup: Setup, replies: ReplyPort, count: Callable[[str, str], None], card_links: CardLinks
) -> Testusers:
    """Assemble the parts; `count` receives a click's name and its outcome."""
    interactions = StoredInteractions(setup, replies, count, card_links)
    timers = Timers(setup)
    messages = RequestMessages(setup, card_links)
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
        REFUSED: messages.refused,
    }
    plans = (messages.plan, timers.plan)
    return Testusers(setup, interactions, card_links, runners, renderers, plans)
