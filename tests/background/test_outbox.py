"""The outbox sends messages in order, and retries each message until Slack accepts it."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import SlackError, SlackUnreachable
from bot.slack.client import SlackClient
from bot.slack.messages import block_kit
from bot.slack.messages.block_kit import Message
from bot.slack.sender import Outgoing, Sender, drawn
from bot.store import jobs, outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease, LeaseLost
from bot.store.outbox import OutboxMessage
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.clock import FakeClock

CHANNEL = "C0ALERTS"
KEY = "incident:1"


@dataclass
class Rig:
    """Posts cards in a channel. `state` contains the current text of each card."""

    database: Database
    clock: FakeClock
    slack: RunningSlack
    sender: Sender
    state: dict[str, str] = field(default_factory=dict)
    edit_seconds: float = 0.0
    slack_blocks: tuple = ()
    channel: str = CHANNEL

    async def card(self, _tx: Transaction, message: OutboxMessage) -> Outgoing | None:
        words = self.state.get(message.subject)
        if words is None:
            return None
        shown = drawn(Message(words, self.slack_blocks))
        return Outgoing(self.channel, shown, edit_seconds=self.edit_seconds)

    async def note(self, _tx: Transaction, message: OutboxMessage) -> Outgoing:
        payload = message.payload
        thread_of = message.key if payload.get("in_thread") else ""
        shown = drawn(Message(payload["text"]))
        return Outgoing(payload.get("to", CHANNEL), shown, thread_of)

    async def change(self, words: str, key: str = KEY, **payload: object) -> None:
        """Change the text that the card should show."""
        self.state[key] = words
        await self.put(OutboxMessage(key, "some_card", key, payload))

    async def show(self, words: str, key: str = KEY) -> None:
        """Change the text that the card should show, and run the due jobs."""
        await self.change(words, key)
        await self.work()

    async def put(self, message: OutboxMessage) -> None:
        async with self.database.transaction() as tx:
            await outbox.put(tx, message)

    async def say(self, text: str, key: str = KEY, **payload: object) -> None:
        await self.put(OutboxMessage(key, "note", key, {"text": text, **payload}))

    async def work(self) -> list[SlackError]:
        """Run each due job once, as the job loop does. Return the errors that the jobs raised."""
        async with self.database.transaction() as tx:
            claimed = await jobs.claim(tx, "me", 99)
        raised = []
        for job in claimed:
            try:
                again_at = await self.sender.run(
                    job, Lease(self.database, "me", job, self.clock.since_boot)
                )
            except SlackError as error:
                raised.append(error)
                async with self.database.transaction() as tx:
                    again = jobs.Again(await tx.now(), job.tries + 1)
                    await jobs.finish(tx, "me", job, again)
            else:
                async with self.database.transaction() as tx:
                    await jobs.finish(tx, "me", job, again_at and jobs.Again(again_at))
        return raised

    async def due_in(self) -> float | None:
        """Return the seconds until the next message is due, or None if no messages are waiting."""
        async with self.database.read_only() as tx:
            now = await tx.now()
            rows = await tx.connection.execute(jobs.jobs.select())
            times = [(row.due_at - now) / timedelta(seconds=1) for row in rows]
        return min(times, default=None)

    def texts(self, channel: str = CHANNEL) -> list[str]:
        return [message.text for message in self.slack.workspace.messages(channel)]

    def posts(self) -> list[dict]:
        return [call.args for call in self.slack.workspace.calls_of("chat.postMessage")]

    def edits(self) -> int:
        return len(self.slack.workspace.calls_of("chat.update"))


@pytest.fixture
async def rig(database, clock):
    # Slack's client has no timeout if it gets a session.
    timeout = aiohttp.ClientTimeout(total=1)
    async with running_slack() as slack, aiohttp.ClientSession(timeout=timeout) as session:
        web = AsyncWebClient(
            token="xoxb-sandbox",
            base_url=slack.api_url,
            session=session,
            retry_handlers=[],
        )
        rig = Rig(database, clock, slack, None)
        rig.sender = Sender(
            database,
            SlackClient(web, clock),
            {"some_card": rig.card},
            {"note": rig.note},
        )
        yield rig


async def test_only_what_shows_a_card_is_sent_once_for_several(rig):
    await rig.change("open")
    await rig.show("closed")
    assert (rig.texts(), len(rig.posts()), rig.edits()) == (["closed"], 1, 0)
    await rig.say("it began", "somebody")
    await rig.say("it ended", "somebody")
    await rig.work()
    assert rig.texts() == ["closed", "it began", "it ended"]


async def test_edits_keep_their_distance(rig):
    rig.edit_seconds = 10
    await rig.show("1")
    rig.clock.advance(3)
    await rig.show("2")
    await rig.show("3")
    assert rig.texts() == ["1"]
    assert await rig.due_in() == pytest.approx(7)
    rig.clock.advance(7)
    await rig.work()
    assert rig.texts() == ["3"]
    assert rig.edits() == 1


FAULTS = {
    "html and 200": lambda faults: faults.html("chat.postMessage", status=200),
    "an error that passes": lambda faults: faults.error("chat.postMessage", "internal_error"),
    "accepted, then cut": lambda faults: faults.cut("chat.postMessage"),
    "no answer": lambda faults: faults.hang("chat.postMessage"),
    "not in the channel yet": lambda faults: faults.error("chat.postMessage", "not_in_channel"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_message_results_from_every_fault_of_slack(rig, fault):
    FAULTS[fault](rig.slack.workspace.faults)
    await rig.change("open")
    await rig.say("it began", in_thread=True)
    assert len(await rig.work()) == 1
    assert await rig.work() == []
    (card,) = rig.slack.workspace.messages(CHANNEL)
    thread = rig.slack.workspace.thread(CHANNEL, card.ts)
    assert (card.text, [message.text for message in thread]) == ("open", ["it began"])
    first, again, _ = rig.posts()
    assert first["client_msg_id"] == again["client_msg_id"]
    assert await rig.due_in() is None


@pytest.mark.parametrize("error", ["duplicate_message_not_found", "duplicate_channel_not_found"])
async def test_a_card_that_was_deleted_before_its_answer_was_known_is_posted_again(rig, error):
    """After a lost answer, Slack refuses the same `client_msg_id` if the message was deleted."""
    faults = rig.slack.workspace.faults
    faults.cut("chat.postMessage")
    await rig.change("open")
    assert len(await rig.work()) == 1
    (card,) = rig.slack.workspace.messages(CHANNEL)
    rig.slack.workspace.delete(card)
    faults.error("chat.postMessage", error)
    assert await rig.work() == []
    assert rig.texts() == ["open"]
    _, refused, again = rig.posts()
    assert refused["client_msg_id"] != again["client_msg_id"]
    assert await rig.due_in() is None


async def test_edit_whose_answer_is_lost_is_made_again(rig):
    for words in ("failed", "retrying", "failed"):
        if words == "retrying":
            rig.slack.workspace.faults.cut("chat.update")
        await rig.show(words)
    assert rig.texts() == ["failed"]
    assert await rig.due_in() is None


async def test_a_card_that_a_dead_process_posted_is_brought_up_to_date(rig, monkeypatch):
    async def die(*_):
        raise KeyboardInterrupt

    await rig.change("open")
    async with rig.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "dead", 1)
    lease = Lease(rig.database, "dead", job, rig.clock.since_boot)
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "record_card", die)
        with pytest.raises(KeyboardInterrupt):
            await rig.sender.run(job, lease)
    rig.state[KEY] = "closed"
    rig.clock.advance(jobs.LEASE_SECONDS)
    await rig.work()
    assert (rig.texts(), rig.edits()) == (["closed"], 1)


async def test_a_card_that_was_not_needed_after_a_lost_answer_is_brought_up_to_date(rig):
    rig.slack.workspace.faults.cut("chat.postMessage")
    await rig.change("open")
    assert [type(error) for error in await rig.work()] == [SlackUnreachable]
    # As an alert whose organization is muted meanwhile.
    del rig.state[KEY]
    assert await rig.work() == []
    rig.clock.advance(1)
    await rig.show("closed")
    assert rig.texts() == ["closed"]


async def test_failed_edit_after_a_lost_answer_posts_nothing_more(rig):
    rig.slack.workspace.faults.cut("chat.postMessage")
    rig.slack.workspace.faults.drop("chat.update", times=2)
    await rig.change("pending")
    for _ in range(3):
        assert [type(error) for error in await rig.work()] == [SlackUnreachable]
        await rig.change("applied")
    assert await rig.work() == []
    assert rig.texts() == ["applied"]
    assert (len(rig.posts()), rig.edits()) == (2, 3)


async def test_two_notes_with_the_same_words_are_two(rig):
    await rig.say("again")
    await rig.say("again")
    await rig.work()
    assert rig.texts() == ["again", "again"]


async def test_blocks_that_slack_refuses_give_way_to_the_text(rig):
    rig.slack_blocks = (block_kit.section("x"), {"type": "nonsense"})
    await rig.change("the text says it all")
    assert await rig.work() == []
    (card,) = rig.slack.workspace.messages(CHANNEL)
    assert card.text == "the text says it all"
    assert [block["type"] for block in card.blocks] == ["section"]
    await rig.show("and again")
    assert rig.texts() == ["and again"]


async def test_a_person_who_cannot_be_written_to_holds_nothing_up(rig):
    rig.slack.workspace.faults.error("chat.postMessage", "user_disabled")
    await rig.say("for nobody", to="U0VIEWER")
    await rig.say("for all")
    assert await rig.work() == []
    assert rig.texts() == ["for all"]
    assert await rig.due_in() is None


async def test_nothing_is_sent_without_the_lease(rig):
    await rig.change("open")
    async with rig.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "me", 1)
    rig.clock.advance(jobs.LEASE_SECONDS + 1)
    async with rig.database.transaction() as tx:
        await jobs.claim(tx, "another", 1)
    with pytest.raises(LeaseLost):
        await rig.sender.run(job, Lease(rig.database, "me", job))
    assert rig.posts() == []


async def test_a_change_during_a_post_is_sent_afterwards(rig):
    hold = rig.slack.workspace.faults.hold("chat.postMessage", after=True)
    await rig.change("open")
    working = asyncio.create_task(rig.work())
    await hold.reached()
    await rig.change("closed")
    hold.release()
    assert await working == []
    await rig.work()
    assert rig.texts() == ["closed"]
    assert await rig.due_in() is None


OTHER = "C0APPROVALS"


@pytest.mark.parametrize("end", ["deleted", "archived"])
async def test_a_card_whose_channel_is_gone_is_posted_in_the_current_channel(rig, end):
    await rig.show("open")
    if end == "deleted":
        del rig.slack.workspace.channels[CHANNEL]
    else:
        rig.slack.workspace.channels[CHANNEL].is_archived = True
    rig.channel = OTHER
    await rig.show("closed")
    assert rig.texts(OTHER) == ["closed"]
    assert await rig.due_in() is None
    await rig.show("closed for good")
    assert rig.texts(OTHER) == ["closed for good"]


async def test_card_is_posted_where_the_settings_say_now(rig):
    await rig.show("open")
    rig.channel = OTHER
    await rig.show("open")
    assert rig.texts(OTHER) == ["open"]
    assert rig.texts() == [f"This message is now in <#{OTHER}>."]


@pytest.mark.parametrize("fault", ["ratelimited", "server error", "lost answer"])
async def test_a_card_that_moved_leaves_no_live_card_behind(rig, fault):
    await rig.show("open")
    rig.channel = OTHER
    faults = rig.slack.workspace.faults
    if fault == "ratelimited":
        faults.ratelimit("chat.update", retry_after=1)
    elif fault == "server error":
        faults.status("chat.update", 503)
    else:
        faults.cut("chat.update")
    await rig.show("open")
    while (seconds := await rig.due_in()) is not None:
        rig.clock.advance(max(seconds, 0) + 1)
        await rig.work()
    assert rig.texts() == [f"This message is now in <#{OTHER}>."]
    assert rig.texts(OTHER) == ["open"]


@pytest.mark.parametrize("what", ["card", "edit", "note"])
async def test_sender_that_slept_since_its_lease_sends_nothing(rig, what):
    if what == "edit":
        await rig.show("first")
    sent = rig.texts()
    await (rig.say("a note") if what == "note" else rig.change("old"))
    async with rig.database.transaction() as tx:
        (job,) = await jobs.claim(tx, "slow", 9)
    seconds = iter((0.0, 0.0, 6.0))
    with pytest.raises(LeaseLost):
        await rig.sender.run(job, Lease(rig.database, "slow", job, lambda: next(seconds)))
    assert rig.texts() == sent


async def test_late_edit_is_corrected_by_the_next_one(rig):
    await rig.show("first")
    await rig.change("old")
    update, others = rig.sender.slack.update, []

    async def overtaken(channel_id: str, message_ts: str, message: Message) -> None:
        if not others:
            others.append(message)
            rig.state[KEY] = "new"
            async with rig.database.transaction() as tx:
                await jobs.release_all(tx)
            await rig.work()
        await update(channel_id, message_ts, message)

    rig.sender.slack.update = overtaken
    await rig.work()
    assert rig.texts() == ["old"]
    await rig.work()
    assert rig.texts() == ["new"]
    assert await rig.due_in() is None
