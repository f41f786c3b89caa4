"""The demo week: how many of its requests need a second person."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from bot.approvals.rules import State
from bot.settings import read_settings
from bot.store.engine import Database
from sandbox import week
from sandbox.launch import ALIASES, bot_settings
from sandbox.services.running import RunningServices
from sandbox.services.state import ServicesState
from tests.support.testusers import FakeFlowService, World

DAY = 24 * 3600


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
    people = week.testers()
    world.slack.groups[week.TESTERS] = frozenset(person.id for person in people)
    states = Counter[State]()
    for day in week.WORKDAYS:
        for person, text in sorted(week.requests(day), key=lambda asked: asked[1]):
            if text.startswith("remove"):
                await world.work()
            states[(await world.ask(text, person.id)).state] += 1
        await world.pass_time(DAY)
    await database.close()
    assert (len(people), len(lists.lists)) == (20, 3)
    assert set(states) == {State.APPLYING, State.PENDING}
    assert 0 < states[State.PENDING] <= states.total() / 5
