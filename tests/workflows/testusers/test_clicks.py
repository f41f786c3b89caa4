"""A click is stored, followed by whoever lives, and answered."""

from dataclasses import dataclass, field, replace

import pytest

from bot.errors import SlackUnreachable
from bot.model.approval import Act, State
from bot.store import jobs
from bot.ui.message import Message
from bot.workflows.jobs import Lease
from bot.workflows.testusers.clicks import CLICK, REPLY_TRIES, Clicks, StoredClick
from tests.support.testusers import ADA, World


@dataclass
class FakeReplies:
    """A response_url that takes answers, or does not."""

    takes: bool = True
    said: list[str] = field(default_factory=list)

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        self.said.append(message.text)
        return self.takes


def clicks_of(world: World, replies: FakeReplies) -> Clicks:
    return Clicks(world.setup, replies, lambda name, outcome: None)


async def kept(world: World, request) -> jobs.Job:
    """The job of an approval that was clicked in a process that died then."""
    await world.work()
    click = StoredClick(Act.APPROVE, request.id, ADA, (), "https://hooks.example/1")
    await clicks_of(world, FakeReplies()).keep(click)
    async with world.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "one", 9)
    assert job.kind == CLICK
    return job


async def test_another_process_follows_and_answers_a_click(world):
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    other, replies = World(world.database, world.clock, world.service), FakeReplies()
    clicks = clicks_of(other, replies)
    assert await clicks.run(job, Lease(world.database, "one", job)) is None
    assert (await world.stored(request)).state is State.APPLYING
    assert replies.said[0].startswith("You approved")


async def test_an_answer_that_slack_does_not_take_is_tried_again_and_says_the_same(world):
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    replies = FakeReplies(takes=False)
    clicks, lease = clicks_of(world, replies), Lease(world.database, "one", job)
    for tries in range(REPLY_TRIES):
        with pytest.raises(SlackUnreachable):
            await clicks.run(replace(job, tries=tries), lease)
    assert await clicks.run(replace(job, tries=REPLY_TRIES), lease) is None
    assert len(set(replies.said)) == 1
    assert [action for _, action in await world.audited()].count("request.approved") == 1
