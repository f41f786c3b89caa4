"""The outbox sender: delivers each card's messages to Slack in order, retrying as needed.

A card is posted once, and edited whenever the outbox has a newer version than the one sent.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

import structlog

from bot.errors import SlackError, SlackRateLimited, SlackRefused
from bot.slack.client import SlackClient
from bot.slack.messages.block_kit import Message
from bot.store import outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage, SentCard, Waiting

log = structlog.get_logger(__name__)

# Slack's error names for people who can never be messaged.
UNREACHABLE_PEOPLE = frozenset(
    {"user_not_found", "user_disabled", "users_not_found", "cannot_dm_bot", "messages_tab_disabled"}
)
# A refused direct message is retried at increasing intervals and dropped after a day.
GIVE_UP_AFTER = timedelta(days=1)
SHORTEST_PAUSE = timedelta(seconds=20)
LONGEST_PAUSE = timedelta(hours=1)
# Slack's error names for a bot that is locked out. The recipient might still be reachable.
BOT_LOCKED_OUT = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)
# A fixed value, because a message must have the same client_msg_id in every process.
MESSAGE_NAMESPACE = uuid.UUID("6f0f9a4e-3c2b-4a57-9c37-6d3f4f6e1c55")
# Slack's error names for a card that can no longer be edited.
MESSAGE_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
# Slack's error names for a channel where a card can no longer be edited.
PLACE_GONE = frozenset(
    {"channel_not_found", "not_in_channel", "is_archived", "is_inactive", "thread_not_found"}
)

Draw = Callable[[], Awaitable[Message]]


@dataclass(frozen=True)
class Outgoing:
    """A message that is about to be posted or edited, and its place.

    `draw` builds the message without using the transaction in which its data was loaded. If
    `thread_of` is the key of a card, the message belongs in that card's thread, wherever the card
    is. `edit_seconds` is the minimum time between two edits.
    """

    channel_id: str
    draw: Draw
    thread_of: str = ""
    edit_seconds: float = 0.0


Renderer = Callable[[Transaction, OutboxMessage], Awaitable[Outgoing | None]]


def drawn(message: Message) -> Draw:
    """Return the `draw` function of a message that is already complete."""

    async def draw() -> Message:
        return message

    return draw


@dataclass(frozen=True)
class _Step:
    """The next message to send, and what the database knew about its card at the time `now`.

    `name` identifies the post to Slack. If `is_repeated` is True, Slack might already have the card
    with outdated content.
    """

    lease: Lease
    message: OutboxMessage
    outgoing: Outgoing
    sent: SentCard | None
    above: SentCard | None
    now: datetime
    name: str
    is_repeated: bool
    is_last: bool


@dataclass
class Sender:
    """Runs `send:<key>` jobs.

    `cards` and `notes` have a renderer for each kind of message. A renderer loads the stored state,
    and returns None if the message is no longer needed. Cards show the current state, so only the
    last of a card's consecutive messages is sent. Notes are posted once each.
    """

    database: Database
    slack: SlackClient
    cards: Mapping[str, Renderer]
    notes: Mapping[str, Renderer]

    @property
    def kinds(self) -> dict[str, Kind]:
        """The jobs that send messages."""
        return {outbox.SEND: Kind(self.run, at_once=24)}

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Send a key's waiting messages. Return when to continue, or None if all are handled."""
        while not lease.is_finished:
            step = await self._next(job.subject, lease)
            if step is None:
                break
            try:
                again_at = await self._send(step)
            except SlackRateLimited as error:
                log.info("slack.rate_limited", seconds=error.retry_after_seconds)
                return await self.database.now() + timedelta(seconds=error.retry_after_seconds)
            if again_at is not None:
                return again_at
        return None

    async def _next(self, key: str, lease: Lease) -> _Step | None:
        """Load the next message to send, or finish the job if there is none."""
        step = None
        async with self.database.transaction() as tx:
            waiting = await outbox.waiting(tx, key)
            messages = waiting.messages
            unneeded = []
            for message, following in zip_longest(messages, messages[1:]):
                is_same = following and following.kind == message.kind
                if message.kind in self.cards and is_same:
                    outgoing = None
                else:
                    renderer = self.cards.get(message.kind) or self.notes.get(message.kind)
                    # Messages of an earlier version may be of a kind that no longer exists.
                    outgoing = await renderer(tx, message) if renderer else None
                if outgoing is not None:
                    step = await self._step(tx, lease, waiting, message, outgoing)
                    break
                unneeded.append(message.id)
            if unneeded:
                await outbox.mark_sent(tx, unneeded)
            if step is None:
                await lease.finish(tx)
            else:
                await lease.hold(tx)
        return step

    async def _step(
        self,
        tx: Transaction,
        lease: Lease,
        waiting: Waiting,
        message: OutboxMessage,
        outgoing: Outgoing,
    ) -> _Step:
        sent = waiting.sent if message.kind in self.cards else None
        above = await outbox.sent_card(tx, outgoing.thread_of) if outgoing.thread_of else None
        if message.kind in self.notes:
            # Keep the name that earlier versions used, so that their posts aren't repeated.
            name = f"letter:{message.id}:{message.created_at}"
            is_repeated = False
        elif sent is None:
            await outbox.begin_post(tx, message)
            name = f"{message.key}:{waiting.first_at}"
            is_repeated = waiting.is_repeated
        else:
            # The card gets another ID if it must be posted again, such as in another channel.
            name = f"{sent.key}:{sent.channel_id}:{sent.message_ts}"
            is_repeated = True
        now = await tx.now()
        is_last = message is waiting.messages[-1]
        return _Step(lease, message, outgoing, sent, above, now, name, is_repeated, is_last)

    async def _send(self, step: _Step) -> datetime | None:
        outgoing = step.outgoing
        sent = step.sent
        if outgoing.thread_of and step.above is None:
            # The thread doesn't exist until the card is in Slack.
            return step.now + SHORTEST_PAUSE
        if sent is not None:
            may_edit_at = sent.sent_at + timedelta(seconds=outgoing.edit_seconds)
            if may_edit_at > step.now:
                return may_edit_at
        message = await outgoing.draw()
        if step.message.kind in self.notes:
            return await self._post_note(step, message)
        await self._show(step, message)
        return None

    async def _show(self, step: _Step, message: Message) -> None:
        """Post or edit the card."""
        sent = step.sent
        outgoing = step.outgoing
        if sent is None:
            await self._post(step, message)
        elif sent.channel_id != outgoing.channel_id:
            await self._post(step, message)
            moved = Message(f"This message is now in <#{outgoing.channel_id}>.")
            try:
                await self.slack.update(sent.channel_id, sent.message_ts, moved)
            except SlackError as error:
                # The old card might be gone. If not, its buttons work like the new card's buttons.
                log.info("outbox.not_moved", reason=error.sentence)
        else:
            try:
                await self._edit(step, message, sent)
            except SlackRefused as error:
                if error.error not in MESSAGE_GONE:
                    raise
                await self._post(step, message)

    async def _post(self, step: _Step, message: Message) -> None:
        """Post the card. If an earlier attempt might have reached Slack, also edit the card."""
        channel_id, message_ts = await self._to_slack(step, message)
        version = 0 if step.is_repeated else step.message.id
        card = SentCard(step.message.key, channel_id, message_ts, version, step.now)
        # Store the location first, so that the card isn't posted again after a failed edit.
        is_stored = await self._record(step, card, step.sent)
        if is_stored and step.is_repeated:
            await self._edit(step, message, card)

    async def _edit(self, step: _Step, message: Message, sent: SentCard) -> None:
        step.lease.check()
        await self.slack.update(sent.channel_id, sent.message_ts, message)
        shown = SentCard(sent.key, sent.channel_id, sent.message_ts, step.message.id, step.now)
        await self._record(step, shown, sent)

    async def _record(self, step: _Step, card: SentCard, read: SentCard | None) -> bool:
        """Store where the card is and what it shows. Return False if another process sent it too.

        Then nobody knows which of the two texts Slack shows, so the card is edited once more.
        """
        async with self.database.transaction() as tx:
            is_stored = await outbox.record_card(tx, card, read)
            if not is_stored:
                await outbox.put(tx, step.message)
            if card.version or not is_stored:
                await self._mark(tx, step)
        return is_stored

    async def _post_note(self, step: _Step, message: Message) -> datetime | None:
        is_in_thread = step.above is not None
        try:
            await self._to_slack(step, message)
        except SlackRefused as error:
            gone_for_good = UNREACHABLE_PEOPLE | (PLACE_GONE if is_in_thread else frozenset())
            age = step.now - (step.message.created_at or step.now)
            if error.error not in gone_for_good and age < GIVE_UP_AFTER:
                if is_in_thread or error.error in BOT_LOCKED_OUT:
                    raise
                # The person may become reachable later.
                log.warning("outbox.refused", error=error.error)
                return step.now + min(max(age / 2, SHORTEST_PAUSE), LONGEST_PAUSE)
            # Drop the message, so that later messages, such as a reposted card, aren't delayed.
            log.warning("outbox.unreachable", error=error.error)
            await self._done(step, error.error)
        else:
            await self._done(step)
        return None

    async def _to_slack(self, step: _Step, message: Message) -> tuple[str, str]:
        """Post a message, and return its channel and timestamp."""
        channel_id = step.above.channel_id if step.above else step.outgoing.channel_id
        thread_ts = step.above.message_ts if step.above else None
        step.lease.check()
        return await self.slack.post(
            channel_id, message, thread_ts=thread_ts, client_msg_id=_client_msg_id(step.name)
        )

    async def _done(self, step: _Step, failure: str | None = None) -> None:
        async with self.database.transaction() as tx:
            await self._mark(tx, step, failure)

    async def _mark(self, tx: Transaction, step: _Step, failure: str | None = None) -> None:
        """Mark the message as sent, and finish the job if no other message was waiting."""
        await outbox.mark_sent(tx, [step.message.id], failure)
        if step.is_last:
            await step.lease.finish(tx)


def _client_msg_id(name: str) -> str:
    """Derive the client_msg_id from `name`. Slack uses this ID to detect duplicate posts."""
    return str(uuid.uuid5(MESSAGE_NAMESPACE, name))
