"""The outbox's sender: takes messages to Slack, in order per card, until Slack has taken them."""

import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Protocol

import structlog

from bot.background.jobs import Lease
from bot.clients.posting import in_plain_if_need_be
from bot.dataclass import dataclass
from bot.errors import SlackError, SlackMessageGone, SlackRateLimited, SlackRefused
from bot.store import outbox
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.store.outbox import SEND as SEND_KIND
from bot.store.outbox import OutboxMessage, SentCard
from bot.ui.message import Message

__all__ = ["SEND_KIND", "CardNow", "Note", "Renderer", "Sender", "SlackMessages"]

log = structlog.get_logger(__name__)

# Names by which Slack says that a person can never be written to.
UNREACHABLE_PEOPLE = frozenset(
    {"user_not_found", "user_disabled", "users_not_found", "cannot_dm_bot", "messages_tab_disabled"}
)
# Fixed, so that the same message has the same client_msg_id in every process.
MESSAGE_NAMESPACE = uuid.UUID("6f0f9a4e-3c2b-4a57-9c37-6d3f4f6e1c55")
# Names by which Slack says that nothing can be written where a card stands any more.
PLACE_GONE = frozenset(
    {"channel_not_found", "not_in_channel", "is_archived", "is_inactive", "thread_not_found"}
)


class SlackMessages(Protocol):
    """What the sender needs of Slack. Every method raises `SlackError`s."""

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post and return the channel id and the message's ts, as Slack gives them."""
        ...

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit a message of ours."""
        ...


@dataclass(frozen=True)
class CardNow:
    """A card as it should stand now: posted when it is not there yet, else edited.

    `edit_seconds` is the least time between two edits. One that `follows` is posted anew where it
    belongs by now, when the settings name another channel; any is when its own channel is gone,
    but a copy, which stands beside the card that counts, and what stands in the thread of the card
    whose key is `under`.
    """

    channel_id: str
    message: Message
    edit_seconds: float = 0.0
    follows: bool = False
    is_copy: bool = False
    under: str = ""

    @property
    def is_beside(self) -> bool:
        """Whether nothing is lost when it cannot be shown: the card itself says the same."""
        return self.is_copy or bool(self.under)


@dataclass(frozen=True)
class Note:
    """A message of its own, to a channel or a person; `in_thread` puts it under its key's card."""

    channel_id: str
    message: Message
    in_thread: bool = False


Renderer = Callable[[OutboxMessage], Awaitable[CardNow | Note | None]]


class Sender:
    """Runs the jobs `send:<key>`.

    Args:
        database: Where the outbox messages stand.
        slack: The Web API.
        renderers: Makes the message of each kind from what is stored now; None when there is
            nothing to say any more.
        card_kinds: The kinds that say how one card stands: of two in a row one edit is enough.
    """

    def __init__(
        self,
        database: Database,
        slack: SlackMessages,
        renderers: Mapping[str, Renderer],
        card_kinds: Collection[str],
    ) -> None:
        self._database = database
        self._slack = slack
        self._renderers = renderers
        self._card_kinds = card_kinds

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Send the waiting messages of a key; return when to go on, or None when all are sent."""
        async with self._database.read_only() as tx:
            outbox_messages = await outbox.waiting(tx, job.subject)
        for outbox_message, following in zip_longest(outbox_messages, outbox_messages[1:]):
            if following is not None and self._is_same_card(outbox_message, following):
                # One edit then shows both. What stands between two edits is sent in its turn.
                await self._done([outbox_message.id])
                continue
            try:
                again_at = await self._send(outbox_message, lease)
            except SlackRateLimited as error:
                log.info("slack.rate_limited", seconds=error.retry_after_seconds)
                return await self._in(error.retry_after_seconds)
            if again_at is not None:
                return again_at
        return None

    def _is_same_card(self, one: OutboxMessage, other: OutboxMessage) -> bool:
        is_card = one.kind in self._card_kinds
        return is_card and (one.kind, one.subject) == (other.kind, other.subject)

    async def _send(self, outbox_message: OutboxMessage, lease: Lease) -> datetime | None:
        await lease.confirm()
        async with self._database.read_only() as tx:
            sent, now = await outbox.sent_card(tx, outbox_message.key), await tx.now()
        rendered = await self._renderers[outbox_message.kind](outbox_message)
        if rendered is None:
            await self._done([outbox_message.id])
            return None
        if isinstance(rendered, Note):
            await self._post_note(outbox_message, lease, rendered, sent)
            return None
        return await _Showing(
            self._database, self._slack, lease, outbox_message, rendered, sent
        ).bring_up_to_date(now)

    async def _post_note(
        self, outbox_message: OutboxMessage, lease: Lease, note: Note, sent: SentCard | None
    ) -> None:
        thread_ts, channel_id = None, note.channel_id
        if note.in_thread and sent is not None:
            thread_ts, channel_id = sent.message_ts, sent.channel_id
        # Earlier versions named it so: what one of them posted is not posted again.
        name = f"letter:{outbox_message.id}:{outbox_message.created_at}"

        def post(message: Message) -> Awaitable[tuple[str, str]]:
            lease.check()
            return self._slack.post(
                channel_id, message, thread_ts=thread_ts, client_msg_id=_client_msg_id(name)
            )

        try:
            await in_plain_if_need_be(note.message, post)
        except SlackRefused as error:
            gone_for_good = UNREACHABLE_PEOPLE | (PLACE_GONE if thread_ts else frozenset())
            if error.error not in gone_for_good:
                raise
            # What comes after it is not held up: the card, for one, which is posted anew.
            log.warning("outbox.unreachable", error=error.error)
            await self._done([outbox_message.id], error.error)
        else:
            await self._done([outbox_message.id])

    async def _done(self, ids: Sequence[int], failure: str | None = None) -> None:
        async with self._database.transaction() as tx:
            await outbox.mark_sent(tx, ids, failure)

    async def _in(self, seconds: float) -> datetime:
        async with self._database.read_only() as tx:
            return await tx.now() + timedelta(seconds=seconds)


class _Showing:
    """One card, shown as it should stand now.

    Nothing is sent when the lease is too old by then, and what is noted of it afterwards counts
    only if nobody else showed the card since it was read: a process may wake up late.
    """

    def __init__(
        self,
        database: Database,
        slack: SlackMessages,
        lease: Lease,
        outbox_message: OutboxMessage,
        card: CardNow,
        sent: SentCard | None,
    ) -> None:
        self._database = database
        self._slack = slack
        self._lease = lease
        self._outbox_message = outbox_message
        self._card = card
        self._sent = sent
        self._fingerprint = _fingerprint(card.message)

    async def bring_up_to_date(self, now: datetime) -> datetime | None:
        """Post or edit the card; return when to do so, if that is later."""
        sent = self._sent
        if sent is None:
            await self._post_first()
        elif self._card.follows and sent.channel_id != self._card.channel_id:
            await self._move(sent)
        elif sent.fingerprint == self._fingerprint:
            await self._is_shown(sent)
        elif sent.sent_at + timedelta(seconds=self._card.edit_seconds) > now:
            return sent.sent_at + timedelta(seconds=self._card.edit_seconds)
        else:
            await self._edit(sent)
        return None

    async def _post_first(self) -> None:
        """Post the card; when an earlier try may have arrived, Slack shows what that one said."""
        async with self._database.transaction() as tx:
            begun = await outbox.begin_post(tx, self._outbox_message)
        name = f"{self._outbox_message.key}:{begun.first_at}"
        try:
            await self._post(name, is_repeated=begun.is_repeated)
        except (SlackRateLimited, SlackRefused) as error:
            is_lost = isinstance(error, SlackRefused) and error.error in PLACE_GONE
            async with self._database.transaction() as tx:
                await outbox.end_post(tx, self._outbox_message)
                if is_lost and self._card.is_beside:
                    await outbox.mark_sent(tx, [self._outbox_message.id], error.sentence)
                    return
            raise

    async def _edit(self, sent: SentCard) -> None:
        try:
            await self._update(sent)
        except SlackMessageGone:
            await (self._is_shown(sent) if self._card.is_beside else self._post_anew(sent))
        except SlackRefused as error:
            if error.error in PLACE_GONE and self._card.is_beside:
                await self._is_shown(sent)
                return
            if error.error not in PLACE_GONE or sent.channel_id == self._card.channel_id:
                raise
            await self._post_anew(sent)

    async def _move(self, sent: SentCard) -> None:
        """Post the card where it belongs by now, and take the buttons from where it was."""
        await self._post_anew(sent)
        moved = Message(f"This request is now in <#{self._card.channel_id}>.")
        try:
            await self._slack.update(sent.channel_id, sent.message_ts, moved)
        except SlackError as error:
            # It may be gone. If not, its buttons do what those of the new card do.
            log.info("outbox.not_moved", reason=error.sentence)

    async def _post_anew(self, sent: SentCard) -> None:
        """Somebody deleted it, or its channel: post it under an id that Slack has not seen."""
        await self._post(f"{sent.key}:{sent.channel_id}:{sent.message_ts}", is_repeated=True)

    async def _post(self, name: str, *, is_repeated: bool) -> None:
        """Where it stands is remembered before it is edited: an edit that fails posts no more."""
        place, thread_ts = await self._place()

        def post(message: Message) -> Awaitable[tuple[str, str]]:
            self._lease.check()
            return self._slack.post(
                place, message, thread_ts=thread_ts, client_msg_id=_client_msg_id(name)
            )

        channel_id, message_ts = await in_plain_if_need_be(self._card.message, post)
        shown = outbox.WHATEVER if is_repeated else self._fingerprint
        standing = await self._note(channel_id, message_ts, shown, is_done=not is_repeated)
        if is_repeated and standing is not None:
            self._sent = standing
            await self._update(standing)

    async def _place(self) -> tuple[str, str | None]:
        """Return the channel, and the thread where it stands under another card."""
        if not self._card.under:
            return self._card.channel_id, None
        async with self._database.read_only() as tx:
            above = await outbox.sent_card(tx, self._card.under)
        return (above.channel_id, above.message_ts) if above else (self._card.channel_id, None)

    async def _update(self, sent: SentCard) -> None:
        def update(message: Message) -> Awaitable[None]:
            self._lease.check()
            return self._slack.update(sent.channel_id, sent.message_ts, message)

        await in_plain_if_need_be(self._card.message, update)
        await self._note(sent.channel_id, sent.message_ts, self._fingerprint, is_done=True)

    async def _note(
        self, channel_id: str, message_ts: str, shown: str, *, is_done: bool
    ) -> SentCard | None:
        """Remember what stands where; if somebody else did meanwhile, have it shown anew."""
        message = self._outbox_message
        async with self._database.transaction() as tx:
            card = SentCard(message.key, channel_id, message_ts, shown, await tx.now())
            if not await outbox.replace_card(tx, card, self._sent):
                await outbox.doubt_card(tx, message)
                return None
            if is_done:
                await outbox.mark_sent(tx, [message.id])
        return card

    async def _is_shown(self, sent: SentCard) -> None:
        async with self._database.transaction() as tx:
            if await outbox.sent_card(tx, sent.key) == sent:
                await outbox.mark_sent(tx, [self._outbox_message.id])
            else:
                await outbox.doubt_card(tx, self._outbox_message)


def _fingerprint(message: Message) -> str:
    payload = json.dumps(message.payload(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest()


def _client_msg_id(name: str) -> str:
    """Name the message, so that a repeated post after a lost answer can be recognised as one."""
    return str(uuid.uuid5(MESSAGE_NAMESPACE, name))
