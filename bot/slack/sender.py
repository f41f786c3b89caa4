"""The outbox sender: delivers each card's messages to Slack in order, retrying as needed."""

import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

import structlog

from bot.errors import SlackError, SlackRateLimited, SlackRefused
from bot.slack.client import SlackClient
from bot.slack.messages.block_kit import Message, fingerprint
from bot.store import outbox
from bot.store.engine import Database
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage, SentCard

log = structlog.get_logger(__name__)

# Slack's error names for people who can never be messaged.
UNREACHABLE_PEOPLE = frozenset(
    {"user_not_found", "user_disabled", "users_not_found", "cannot_dm_bot", "messages_tab_disabled"}
)
# A refused direct message is retried at increasing intervals and dropped after a day.
GIVE_UP_AFTER = timedelta(days=1)
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=20), timedelta(hours=1)
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


@dataclass(frozen=True)
class CardNow:
    """The current content of a card that is about to be posted or edited.

    `edit_seconds` is the minimum time between two edits. If `follows` is True, the card is posted
    again if the settings name a different channel. If `under` is the key of another card, this card
    is posted in that card's thread. If this card's message is gone, the card is posted again unless
    it is a copy or in a thread.
    """

    channel_id: str
    message: Message
    edit_seconds: float = 0.0
    follows: bool = False
    is_copy: bool = False
    under: str = ""

    @property
    def is_beside(self) -> bool:
        """True if the card can be dropped after a failure, because the main card is enough."""
        return self.is_copy or bool(self.under)


@dataclass(frozen=True)
class Note:
    """A message to a person or channel, or in the card's thread if `in_thread` is True."""

    channel_id: str
    message: Message
    in_thread: bool = False


Renderer = Callable[[OutboxMessage], Awaitable[CardNow | Note | None]]


@dataclass
class Sender:
    """Runs `send:<key>` jobs.

    `renderers` has a function for each kind of message. The function builds the message from the
    stored state, or returns None if the message is no longer needed. Messages of a kind in
    `card_kinds` show a card's current state, so one edit is enough for consecutive messages.
    """

    database: Database
    slack: SlackClient
    renderers: Mapping[str, Renderer]
    card_kinds: Collection[str]

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Send a key's waiting messages. Return when to continue, or None if all are handled."""
        async with self.database.read_only() as tx:
            outbox_messages = await outbox.waiting(tx, job.subject)
        for outbox_message, following in zip_longest(outbox_messages, outbox_messages[1:]):
            same = following and (following.kind, following.subject)
            is_card = outbox_message.kind in self.card_kinds
            if is_card and same == (outbox_message.kind, outbox_message.subject):
                # One edit is enough for both. Messages between two edits are sent in order.
                await self._done([outbox_message.id])
                continue
            await lease.confirm()
            async with self.database.read_only() as tx:
                sent, now = await outbox.sent_card(tx, outbox_message.key), await tx.now()
            again_at = None
            try:
                rendered = await self.renderers[outbox_message.kind](outbox_message)
                if rendered is None:
                    await self._done([outbox_message.id])
                elif isinstance(rendered, Note):
                    again_at = await self._post_note(outbox_message, lease, rendered, sent, now)
                else:
                    again_at = await _Showing(
                        self.database, self.slack, lease, outbox_message, rendered, sent
                    ).bring_up_to_date(now)
            except SlackRateLimited as error:
                log.info("slack.rate_limited", seconds=error.retry_after_seconds)
                return await self.database.now() + timedelta(seconds=error.retry_after_seconds)
            if again_at is not None:
                return again_at
        return None

    async def _post_note(
        self,
        outbox_message: OutboxMessage,
        lease: Lease,
        note: Note,
        sent: SentCard | None,
        now: datetime,
    ) -> datetime | None:
        thread_ts, channel_id = None, note.channel_id
        if note.in_thread and sent is not None:
            thread_ts, channel_id = sent.message_ts, sent.channel_id
        # Keep the name that earlier versions used, so that their posts aren't repeated.
        name = f"letter:{outbox_message.id}:{outbox_message.created_at}"
        lease.check()
        try:
            await self.slack.post(
                channel_id, note.message, thread_ts=thread_ts, client_msg_id=_client_msg_id(name)
            )
        except SlackRefused as error:
            gone_for_good = UNREACHABLE_PEOPLE | (PLACE_GONE if thread_ts else frozenset())
            age = now - (outbox_message.created_at or now)
            if error.error not in gone_for_good and age < GIVE_UP_AFTER:
                if note.in_thread or error.error in BOT_LOCKED_OUT:
                    raise
                # The person may become reachable later.
                log.warning("outbox.refused", error=error.error)
                return now + min(max(age / 2, SHORTEST_PAUSE), LONGEST_PAUSE)
            # Drop the message, so that later messages, such as a reposted card, aren't delayed.
            log.warning("outbox.unreachable", error=error.error)
            await self._done([outbox_message.id], error.error)
        else:
            await self._done([outbox_message.id])
        return None

    async def _done(self, ids: Sequence[int], failure: str | None = None) -> None:
        async with self.database.transaction() as tx:
            await outbox.mark_sent(tx, ids, failure)


@dataclass
class _Showing:
    database: Database
    slack: SlackClient
    lease: Lease
    outbox_message: OutboxMessage
    card: CardNow
    sent: SentCard | None

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.card.message.payload())

    async def bring_up_to_date(self, now: datetime) -> datetime | None:
        """Post or edit the card. Return when to try again, or None if no retry is needed."""
        sent = self.sent
        if sent is None:
            if self.card.under and await self._above() is None:
                # The thread doesn't exist until the main card is in Slack.
                return now + SHORTEST_PAUSE
            await self._post_first()
        elif self.card.follows and sent.channel_id != self.card.channel_id:
            await self._post_anew(sent)
            moved = Message(f"This request is now in <#{self.card.channel_id}>.")
            try:
                await self.slack.update(sent.channel_id, sent.message_ts, moved)
            except SlackError as error:
                # The old card might be gone. If not, its buttons work like the new card's buttons.
                log.info("outbox.not_moved", reason=error.sentence)
        elif sent.fingerprint == self.fingerprint:
            await self._is_shown(sent)
        elif sent.sent_at + timedelta(seconds=self.card.edit_seconds) > now:
            return sent.sent_at + timedelta(seconds=self.card.edit_seconds)
        else:
            await self._edit(sent)
        return None

    async def _above(self) -> SentCard | None:
        async with self.database.read_only() as tx:
            return await outbox.sent_card(tx, self.card.under) if self.card.under else None

    async def _post_first(self) -> None:
        """Post the card. If an earlier attempt might have reached Slack, also edit the card."""
        async with self.database.transaction() as tx:
            first_at, is_repeated = await outbox.begin_post(tx, self.outbox_message)
        name = f"{self.outbox_message.key}:{first_at}"
        try:
            await self._post(name, is_repeated=is_repeated)
        except (SlackRateLimited, SlackRefused) as error:
            is_lost = isinstance(error, SlackRefused) and error.error in PLACE_GONE
            async with self.database.transaction() as tx:
                await outbox.end_post(tx, self.outbox_message)
                if is_lost and self.card.is_beside:
                    await outbox.mark_sent(tx, [self.outbox_message.id], error.sentence)
                    return
            raise

    async def _edit(self, sent: SentCard) -> None:
        if sent.fingerprint != outbox.WHATEVER:
            # If the response is lost, the process can't know which text Slack shows.
            unsure = await self._note(
                sent.channel_id, sent.message_ts, outbox.WHATEVER, is_done=False
            )
            if unsure is None:
                return
            self.sent = sent = unsure
        try:
            await self._update(sent)
        except SlackRefused as error:
            has_moved = sent.channel_id != self.card.channel_id
            if error.error not in MESSAGE_GONE | PLACE_GONE:
                raise
            if self.card.is_beside:
                await self._is_shown(sent)
            elif error.error in MESSAGE_GONE or has_moved:
                await self._post_anew(sent)
            else:
                raise

    async def _post_anew(self, sent: SentCard) -> None:
        """Post the card under a new ID, because the old card is gone or in another channel."""
        await self._post(f"{sent.key}:{sent.channel_id}:{sent.message_ts}", is_repeated=True)

    async def _post(self, name: str, *, is_repeated: bool) -> None:
        """Post the card and store its location, so that it isn't reposted after a failed edit."""
        place, thread_ts = self.card.channel_id, None
        if above := await self._above():
            place, thread_ts = above.channel_id, above.message_ts
        self.lease.check()
        channel_id, message_ts = await self.slack.post(
            place, self.card.message, thread_ts=thread_ts, client_msg_id=_client_msg_id(name)
        )
        shown = outbox.WHATEVER if is_repeated else self.fingerprint
        standing = await self._note(channel_id, message_ts, shown, is_done=not is_repeated)
        if is_repeated and standing is not None:
            self.sent = standing
            await self._update(standing)

    async def _update(self, sent: SentCard) -> None:
        self.lease.check()
        await self.slack.update(sent.channel_id, sent.message_ts, self.card.message)
        await self._note(sent.channel_id, sent.message_ts, self.fingerprint, is_done=True)

    async def _note(
        self, channel_id: str, message_ts: str, shown: str, *, is_done: bool
    ) -> SentCard | None:
        message = self.outbox_message
        async with self.database.transaction() as tx:
            card = SentCard(message.key, channel_id, message_ts, shown, await tx.now())
            if not await outbox.replace_card(tx, card, self.sent):
                await outbox.doubt_card(tx, message)
                return None
            if is_done:
                await outbox.mark_sent(tx, [message.id])
        return card

    async def _is_shown(self, sent: SentCard) -> None:
        async with self.database.transaction() as tx:
            if await outbox.sent_card(tx, sent.key) == sent:
                await outbox.mark_sent(tx, [self.outbox_message.id])
            else:
                await outbox.doubt_card(tx, self.outbox_message)


def _client_msg_id(name: str) -> str:
    """Derive the client_msg_id from `name`. Slack uses this ID to detect duplicate posts."""
    return str(uuid.uuid5(MESSAGE_NAMESPACE, name))
