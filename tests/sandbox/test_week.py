"""In the demo week, at most a fifth of the requests need a second person's approval.

Most people on the team add their phone numbers for a few hours to test drafts. A rule approves
requests for the flow `practice`. Requests for the two customer flows need another person's
approval.
"""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from bot.approvals.rules import State
from bot.store.engine import Database
from sandbox.flows import ALIASES
from sandbox.launch import bot_settings
from sandbox.services.running import RunningServices
from sandbox.services.state import ServicesState
from tests.support.settings import read_settings
from tests.support.testusers import FakeFlowService, World

DAY = 24 * 3600
PEOPLE = [f"U0TESTER{number:02}" for number in range(10)]


def requests(day: int):
    """Yield the requests that the team makes on one day.

    Everyone tries out a draft. A third of the people remove themselves early, and some add a
    colleague.
    """
    for number, person in enumerate(PEOPLE):
        own = f"+1555300{number:04}"
        yield person, f"add practice {own} for 2h because trying a draft"
        if number % 3 == day % 3:
            yield person, f"remove practice {own}"
        if number % 7 == day:
            flow = ("welcome", "survey")[number % 2]
            yield person, f"add {flow} +1555400{number:03}{day} for 3d because a colleague joins in"


async def test_a_fifth_of_the_week_at_most_needs_a_second_person(sqlite_url, clock):
    slack = SimpleNamespace(
        workspace=SimpleNamespace(bot_token="xoxb-sandbox"),
        signing_secret="0" * 32,
        api_url="http://127.0.0.1:1/api/",
    )
    services = RunningServices("http://127.0.0.1:1", ServicesState())
    settings = read_settings(bot_settings(slack, services, Path("unused.db"), 1))
    database = Database(sqlite_url, clock)
    lists = FakeFlowService({sid: [] for sid in ALIASES.values()})
    world = World(database, clock, lists, settings, policy=settings.policy)
    world.slack.groups["S0TESTERS"] = frozenset(PEOPLE)
    states = Counter()
    for day in range(5):
        for person, text in sorted(requests(day), key=lambda asked: asked[1]):
            if text.startswith("remove"):
                await world.work()
            states[(await world.ask(text, person)).state] += 1
        await world.pass_time(DAY)
    await database.close()
    assert len(lists.lists) == 3
    assert set(states) == {State.APPLYING, State.PENDING}
    assert 0 < states[State.PENDING] <= states.total() / 5
