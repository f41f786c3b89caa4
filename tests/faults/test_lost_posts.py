"""A card whose first post may have arrived: Slack then gives back what was posted then."""

from bot.errors import SlackUnreachable
from bot.store import jobs, outbox
from bot.store.outbox import Letter
from bot.ui.message import Message
from bot.workflows.jobs import Lease
from bot.workflows.outbox import SEND_KIND, CardNow, Sender


class ForgetfulSlack:
    """Takes posts, knows a `client_msg_id` again, and loses its first answer."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self._by_id: dict[str, str] = {}
        self._answers = False

    async def post(self, channel_id, message, *, thread_ts, client_msg_id):
        message_ts = self._by_id.setdefault(client_msg_id, f"{len(self._by_id) + 1}.0")
        self.said.setdefault(message_ts, message.text)
        if not self._answers:
            self._answers = True
            raise SlackUnreachable
        return channel_id, message_ts

    async def update(self, channel_id, message_ts, message):
        self.said[message_ts] = message.text


async def test_the_card_tells_the_truth_after_a_lost_answer(database):
    slack, now_says = ForgetfulSlack(), ["pending"]

    async def render(letter):
        return CardNow("C0APPROVALS", Message(now_says[-1]))

    sender = Sender(database, slack, {"x.card": render})
    await put_letter(database)
    await send(database, sender)
    now_says.append("applied")
    await put_letter(database)
    await send(database, sender)
    assert slack.said == {"1.0": "applied"}


async def put_letter(database):
    async with database.transaction() as tx:
        await outbox.put(tx, Letter("request:1", "x.card", "1"))


async def send(database, sender):
    """Run the send job until it says that it is done, or fails."""
    again_at = True
    while again_at is not None:
        async with database.transaction() as tx:
            (job,) = await jobs.claim(tx, "me", 1)
        assert job.kind == SEND_KIND
        try:
            again_at = await sender.run(job, Lease(database, "me", job))
        except SlackUnreachable:
            again_at = None
        async with database.transaction() as tx:
            await jobs.finish(tx, "me", job, again_at)


async def test_a_job_whose_letters_are_all_sent_is_done(database, clock):
    sender = Sender(database, ForgetfulSlack(), {})
    job = jobs.Job("send:request:1", SEND_KIND, "request:1", clock.now())
    assert await sender.run(job, Lease(database, "me", job)) is None
