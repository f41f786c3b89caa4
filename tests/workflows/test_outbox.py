"""A card says what is stored, whatever happens between the bot and Slack."""

from dataclasses import dataclass, field

import pytest

from bot.errors import SlackMessageGone, SlackUnreachable
from bot.store import jobs, outbox
from bot.store.outbox import Letter
from bot.ui.message import Message
from bot.workflows.jobs import Lease
from bot.workflows.outbox import CardNow, Sender


@dataclass
class FakeSlackMessages:
    """A channel; a `client_msg_id` seen before gives the message that it posted."""

    shown: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    lose_answers: int = 0
    refuse_edits: int = 0
    posts: int = 0

    async def post(self, channel_id, message, *, thread_ts, client_msg_id):
        self.posts += 1
        ts = self.ids.setdefault(client_msg_id, str(len(self.ids) + 1))
        self.shown.setdefault(ts, message.text)
        if self.lose_answers:
            self.lose_answers -= 1
            raise SlackUnreachable
        return channel_id, ts

    async def update(self, channel_id, message_ts, message):
        if self.refuse_edits:
            self.refuse_edits -= 1
            raise SlackUnreachable
        if message_ts not in self.shown:
            raise SlackMessageGone
        self.shown[message_ts] = message.text


@dataclass
class Desk:
    """A sender, what it sends, and the state that its card shows."""

    database: object
    slack: FakeSlackMessages = field(default_factory=FakeSlackMessages)
    state: str = "waiting"

    async def change(self, state: str) -> None:
        self.state = state
        async with self.database.transaction() as tx:
            await outbox.put(tx, Letter("request:1", "card", "1"))

    async def card(self, letter: Letter) -> CardNow:
        return CardNow("C1", Message(self.state))

    async def send(self) -> None:
        async with self.database.transaction() as tx:
            claimed = await jobs.claim(tx, "one", 9)
        sender = Sender(self.database, self.slack, {"card": self.card})
        for job in claimed:
            try:
                again_at = await sender.run(job, Lease(self.database, "one", job))
            finally:
                async with self.database.transaction() as tx:
                    await jobs.finish(tx, "one", job, None)
            assert again_at is None


@pytest.fixture
def desk(database) -> Desk:
    return Desk(database)


async def test_several_changes_are_one_edit(desk):
    for state in ("waiting", "approved", "applied"):
        await desk.change(state)
    await desk.send()
    assert desk.slack.shown == {"1": "applied"}


async def test_a_card_whose_posting_was_not_answered_is_brought_up_to_date(desk):
    await desk.change("waiting")
    desk.slack.lose_answers = 1
    with pytest.raises(SlackUnreachable):
        await desk.send()
    await desk.change("applied")
    await desk.send()
    assert desk.slack.shown == {"1": "applied"}


async def test_an_edit_that_fails_after_a_lost_answer_does_not_post_once_more(desk):
    await desk.change("waiting")
    desk.slack.lose_answers, desk.slack.refuse_edits = 1, 2
    for _ in range(3):
        with pytest.raises(SlackUnreachable):
            await desk.send()
        await desk.change("applied")
    await desk.send()
    assert desk.slack.shown == {"1": "applied"}
    assert desk.slack.posts == 2


async def test_a_deleted_card_is_posted_again(desk):
    await desk.change("waiting")
    await desk.send()
    desk.slack.shown.clear()
    await desk.change("applied")
    await desk.send()
    assert list(desk.slack.shown.values()) == ["applied"]
