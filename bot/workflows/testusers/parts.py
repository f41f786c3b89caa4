"""The parts of the approvals, put together: what listeners ask, what jobs run, what is sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.workflows.jobs import Runner
from bot.workflows.outbox import Renderer
from bot.workflows.testusers.applying import Applying
from bot.workflows.testusers.asking import Asking
from bot.workflows.testusers.clicks import CLICK, Clicks, ReplyPort
from bot.workflows.testusers.deadlines import Deadlines
from bot.workflows.testusers.deciding import Deciding
from bot.workflows.testusers.letters import Letters
from bot.workflows.testusers.moves import APPLY, CARD, EXPIRE, REMIND, REMINDER, TOLD
from bot.workflows.testusers.reading import Reading
from bot.workflows.testusers.setup import Setup


@dataclass(frozen=True)
class Testusers:
    """What the listeners of `/testusers` ask."""

    __test__ = False  # for pytest, which takes the name for a test's

    approvals_channel: str
    asking: Asking
    deciding: Deciding
    reading: Reading
    clicks: Clicks


@dataclass(frozen=True)
class TestusersParts:
    """All of it: `runners` go to the job loop by kind, `renderers` to the outbox by kind."""

    __test__ = False

    desk: Testusers
    runners: Mapping[str, Runner]
    renderers: Mapping[str, Renderer]


def testusers_parts(
    setup: Setup, replies: ReplyPort, count: Callable[[str, str], None]
) -> TestusersParts:
    """Put the parts together; `count` takes a click's name and its outcome."""
    clicks, deadlines, letters = Clicks(setup, replies, count), Deadlines(setup), Letters(setup)
    desk = Testusers(
        setup.rules.approvals_channel, Asking(setup), Deciding(setup), Reading(setup), clicks
    )
    runners: dict[str, Runner] = {
        APPLY: Applying(setup).run,
        CLICK: clicks.run,
        EXPIRE: deadlines.expire,
        REMIND: deadlines.remind,
    }
    renderers: dict[str, Renderer] = {
        CARD: letters.card,
        REMINDER: letters.reminder,
        TOLD: letters.told,
    }
    return TestusersParts(desk, runners, renderers)
