"""A click is stored, followed by whoever lives, and answered."""

from dataclasses import dataclass, field
from datetime import timedelta

from bot.approvals.rules import Act, State
from bot.errors import SlackUnreachable
from bot.slack.messages.block_kit import Message
from bot.store import jobs
from bot.store.job_loop import Again, Lease
from bot.testusers.interactions import INTERACTION, StoredInteraction, StoredInteractions
from tests.support.testusers import ABEL, ADA, World, default_policy


@dataclass
class FakeReplies:
    """A response_url that takes answers, or does not, and direct messages that do."""

    takes: bool = True
    said: list[str] = field(default_factory=list)
    direct: list[str] = field(default_factory=list)

    async def say(
        self, response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        if not response_url:
            self.direct.append(message.text)
            return True
        self.said.append(message.text)
        return self.takes


def clicks_of(world: World, replies: FakeReplies) -> StoredInteractions:
    world.replies = replies
    return StoredInteractions(world)


async def kept(world: World, request) -> jobs.Job:
    """The job of an approval that was clicked in a process that died then."""
    await world.work()
    click = StoredInteraction(Act.APPROVE, request.id, ADA, (), "https://hooks.example/1")
    await clicks_of(world, FakeReplies()).store(click)
    async with world.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "one", 9)
    assert job.kind == INTERACTION
    return job


async def test_click_whose_answer_slack_refuses_is_decided_once(database, clock):
    world = World(database, clock, policy=default_policy(approvals_needed=2))
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    replies = FakeReplies(takes=False)
    assert await clicks_of(world, replies).run(job, Lease(database, "one", job)) is None
    assert (len(replies.said), replies.direct) == (1, [])
    assert [item for item in await world.audited() if item[0] == ADA] == [(ADA, "request.approved")]


async def test_click_that_slack_knows_nothing_of_is_followed_again(world):
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    user, world.slack.user = world.slack.user, unreachable
    replies = FakeReplies(takes=False)
    again = await clicks_of(world, replies).run(job, Lease(world.database, "one", job))
    assert again == Again(world.clock.now() + timedelta(seconds=10), 1)
    world.slack.user = user
    await clicks_of(world, replies).run(job, Lease(world.database, "one", job))
    assert (await world.stored(request)).state is State.APPLYING


async def test_click_is_retried_when_an_earlier_approver_is_unknown(database, clock):
    policy = default_policy(approvals_needed=2)
    before = World(database, clock, policy=policy)
    request = await before.ask("add welcome +1")
    await before.decide(Act.APPROVE, request, ABEL)
    world = World(database, clock, before.service, policy=policy)
    job = await kept(world, request)
    user = world.slack.user

    async def silent_about_abel(slack_user_id):
        return await (unreachable if slack_user_id == ABEL else user)(slack_user_id)

    world.slack.user = silent_about_abel
    replies = FakeReplies(takes=False)
    clicks, lease = clicks_of(world, replies), Lease(database, "one", job)
    assert await clicks.run(job, lease) == Again(clock.now() + timedelta(seconds=10), 1)
    assert "couldn't re-check an earlier approver" in replies.said[0]
    world.slack.user = user
    assert await clicks.run(job, lease) is None
    assert (await world.stored(request)).state is State.APPLYING


async def test_refusal_whose_answer_slack_does_not_take_is_said_directly(world):
    request = await world.ask("add welcome +1")
    job = await kept(world, request)
    await world.decide(Act.DENY, request, ABEL, "no")
    replies = FakeReplies(takes=False)
    assert await clicks_of(world, replies).run(job, Lease(world.database, "one", job)) is None
    assert replies.direct == replies.said
    assert "Abel Approver already denied this" in replies.direct[0]


async def unreachable(slack_user_id: str) -> None:
    raise SlackUnreachable
