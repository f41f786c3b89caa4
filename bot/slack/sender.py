"""The outbox sender: delivers each card's messages to Slack in order, retrying as needed.

A card is posted once, and edited whenever the outbox has a newer version than the one sent.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest

import structlog

from bot.errors import SlackRateLimited, SlackRefused
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
# A note that Slack refuses is sent again after growing pauses, and dropped after a day.
SHORTEST_PAUSE = timedelta(seconds=20)
LONGEST_PAUSE = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(days=1)
# A note for a card's thread waits for the card.
CARD_PAUSE = timedelta(seconds=20)
# A fixed value, because a message must have the same client_msg_id in every process.
MESSAGE_NAMESPACE = uuid.UUID("6f0f9a4e-3c2b-4a57-9c37-6d3f4f6e1c55")
# Slack's error names for a card that can no longer be edited, and for one that may be there.
NOT_EDITABLE = frozenset({"cant_update_message", "edit_window_closed"})
MESSAGE_GONE = NOT_EDITABLE | {"message_not_found"}
# Slack's error names for a message that an earlier attempt posted, and that was deleted since.
POSTED_AND_DELETED = frozenset({"duplicate_message_not_found", "duplicate_channel_not_found"})
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
    """The next message to send, and what the database knew about its card.

    `handled` are the IDs of this message and of those before it, which nobody needs anymore.
    `above` is the card whose thread the message belongs in, if any.
    """

    lease: Lease
    waiting: Waiting
    message: OutboxMessage
    handled: Sequence[int]
    outgoing: Outgoing
    above: SentCard | None


@dataclass
class Sender:
    """Runs `send:<key>` jobs. The result of a lease is the card that was sent.

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
                return await self.database.now() + timedelta(seconds=error.retry_after_seconds)
            if again_at is not None:
                return again_at
        return None

    async def _next(self, key: str, lease: Lease) -> _Step | None:
        """Load the next message to send, or finish the job if there is none.

        Nothing here must happen together, so each statement is a transaction of its own.
        """
        handled = list[int]()
        async with self.database.autocommit() as tx:
            waiting = await outbox.waiting(tx, key)
            messages = waiting.messages
            for message, following in zip_longest(messages, messages[1:]):
                handled.append(message.id)
                is_same = following and following.kind == message.kind
                if message.kind in self.cards and is_same:
                    continue
                # Messages of an earlier version may be of a kind that no longer exists.
                renderer = self.cards.get(message.kind) or self.notes.get(message.kind)
                outgoing = await renderer(tx, message) if renderer else None
                if outgoing is None:
                    continue
                thread_of = outgoing.thread_of
                above = await outbox.sent_card(tx, thread_of) if thread_of else None
                if not lease.is_new:
                    await lease.hold(tx)
                return _Step(lease, waiting, message, handled, outgoing, above)
        async with self.database.transaction() as tx:
            if handled:
                await outbox.mark_sent(tx, handled, waiting.at)
            await lease.finish(tx)
        return None

    async def _send(self, step: _Step) -> datetime | None:
        """Send the message. If that has to wait, return until when."""
        outgoing, sent = step.outgoing, step.waiting.sent
        if outgoing.thread_of and step.above is None:
            # The thread doesn't exist until the card is in Slack.
            return step.waiting.at + CARD_PAUSE
        if step.message.kind in self.notes:
            return await self._post_note(step, await outgoing.draw())
        if sent is not None:
            may_edit_at = sent.sent_at + timedelta(seconds=outgoing.edit_seconds)
            if may_edit_at > step.waiting.at:
                return may_edit_at
        message = await outgoing.draw()
        if sent is not None and sent.channel_id == outgoing.channel_id:
            await self._edit(step, message, sent)
            return None
        if sent is not None:
            # The old card goes first, because nothing updates it once the new place is stored.
            moved = Message(f"This message is now in <#{outgoing.channel_id}>.")
            with suppress(SlackRefused):
                await self.slack.update(sent.channel_id, sent.message_ts, moved)
        await self._post(step, message)
        return None

    async def _post(self, step: _Step, message: Message) -> None:
        """Post the card. If an earlier attempt might have reached Slack, also edit the card."""
        key = step.message.key
        sent = step.waiting.sent
        name = f"{key}:{step.waiting.first_at}"
        # An earlier job might have posted it, and then found that it isn't needed.
        is_first = step.waiting.first_at == step.waiting.messages[0].created_at
        might_be_posted = step.lease.job.generation > 1 or not is_first
        if sent is not None:
            # The card gets another ID if it must be posted again, such as in another channel.
            name = f"{key}:{sent.channel_id}:{sent.message_ts}"
            might_be_posted = True
        channel_id, message_ts = await self._to_slack(step, message, name)
        version = 0 if might_be_posted else step.message.id
        digest = "" if might_be_posted else message.digest
        card = SentCard(key, channel_id, message_ts, version, step.waiting.at, digest)
        # Store the location first, so that the card isn't posted again after a failed edit.
        is_stored = await self._record(step, card, sent)
        if is_stored and might_be_posted:
            await self._edit(step, message, card)

    async def _edit(self, step: _Step, message: Message, sent: SentCard) -> None:
        """Edit the card, or post it again if that's impossible.

        If it's only checked, leave it as it is if it already shows this.
        """
        is_checked = all(one.payload.get(outbox.CHECK) for one in step.waiting.messages)
        if not (is_checked and sent.digest == message.digest):
            step.lease.check()
            try:
                await self.slack.update(sent.channel_id, sent.message_ts, message)
            except SlackRefused as error:
                if error.error in MESSAGE_GONE and sent is step.waiting.sent:
                    await self._post(step, message)
                    return
                # Where nothing can be edited, what was posted just now would be posted again.
                if error.error not in NOT_EDITABLE:
                    raise
        shown = replace(
            sent, version=step.message.id, sent_at=step.waiting.at, digest=message.digest
        )
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
        step.lease.result = card
        return is_stored

    async def _post_note(self, step: _Step, message: Message) -> datetime | None:
        created_at = step.message.created_at or step.waiting.at
        failure = None
        try:
            # Keep the name that earlier versions used, so that their posts aren't repeated.
            await self._to_slack(step, message, f"letter:{step.message.id}:{created_at}")
        except SlackRefused as error:
            failure = error.error
            log.warning("outbox.refused", error=failure)
            # A message that is dropped doesn't delay later ones, such as a reposted card.
            gone_for_good = UNREACHABLE_PEOPLE | (PLACE_GONE if step.above else frozenset())
            age = step.waiting.at - created_at
            if failure not in gone_for_good and age < GIVE_UP_AFTER:
                return step.waiting.at + min(max(age / 2, SHORTEST_PAUSE), LONGEST_PAUSE)
        async with self.database.transaction() as tx:
            await self._mark(tx, step, failure)
        return None

    async def _to_slack(self, step: _Step, message: Message, name: str) -> tuple[str, str]:
        """Post a message, and return its channel and timestamp.

        From `name`, Slack recognizes a message that is posted again after a lost response.
        """
        channel_id = step.above.channel_id if step.above else step.outgoing.channel_id
        thread_ts = step.above.message_ts if step.above else None
        post = partial(self.slack.post, channel_id, message, thread_ts=thread_ts)
        step.lease.check()
        try:
            return await post(client_msg_id=str(uuid.uuid5(MESSAGE_NAMESPACE, name)))
        except SlackRefused as error:
            if error.error not in POSTED_AND_DELETED:
                raise
        return await post(client_msg_id=str(uuid.uuid5(MESSAGE_NAMESPACE, f"{name}:again")))

    async def _mark(self, tx: Transaction, step: _Step, failure: str | None = None) -> None:
        """Mark the message as sent, and finish the job if no other message was waiting."""
        if failure:
            await outbox.mark_sent(tx, [step.message.id], step.waiting.at, failure)
        await outbox.mark_sent(tx, step.handled, step.waiting.at)
        if step.message is step.waiting.messages[-1]:
            await step.lease.finish(tx)
