"""The outbox's sender: takes letters to Slack, in order per card, until Slack has taken them."""

import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Protocol

import structlog

from bot.errors import SlackMessageGone, SlackRateLimited, SlackRefused
from bot.posting import in_plain_if_need_be
from bot.store import outbox
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.store.outbox import SEND as SEND_KIND
from bot.store.outbox import Letter, SentCard
from bot.ui.message import Message
from bot.workflows.jobs import Lease

__all__ = ["SEND_KIND", "CardNow", "Note", "Renderer", "Sender", "SlackMessages"]

log = structlog.get_logger(__name__)

# Names by which Slack says that a person can never be written to.
UNREACHABLE_PEOPLE = frozenset(
    {"user_not_found", "user_disabled", "users_not_found", "cannot_dm_bot", "messages_tab_disabled"}
)
# Fixed, so that the same letter has the same client_msg_id in every process.
LETTER_NAMESPACE = uuid.UUID("6f0f9a4e-3c2b-4a57-9c37-6d3f4f6e1c55")
# The fingerprint of a card that shows what an earlier try said.
WHATEVER = ""


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

    `edit_seconds` is the least time between two edits.
    """

    channel_id: str
    message: Message
    edit_seconds: float = 0.0


@dataclass(frozen=True)
class Note:
    """A message of its own, to a channel or a person; `in_thread` puts it under its key's card."""

    channel_id: str
    message: Message
    in_thread: bool = False


Renderer = Callable[[Letter], Awaitable[CardNow | Note | None]]


class Sender:
    """Runs the jobs `send:<key>`.

    Args:
        database: Where the letters stand.
        slack: The Web API.
        renderers: Makes the message of each kind of letter from what is stored now; None when
            there is nothing to say any more.
    """

    def __init__(
        self, database: Database, slack: SlackMessages, renderers: Mapping[str, Renderer]
    ) -> None:
        self._database = database
        self._slack = slack
        self._renderers = renderers

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Send the waiting letters of a key; return when to go on, or None when all are sent."""
        async with self._database.reading() as tx:
            letters = await outbox.waiting(tx, job.subject)
        for letter, following in zip_longest(letters, letters[1:]):
            if following is not None and _is_same_card(letter, following):
                # One edit then shows both. What stands between two edits is sent in its turn.
                await self._done([letter.id])
                continue
            try:
                again_at = await self._send(letter, lease)
            except SlackRateLimited as error:
                log.info("slack.rate_limited", seconds=error.retry_after_seconds)
                return await self._in(error.retry_after_seconds)
            if again_at is not None:
                return again_at
        return None

    async def _send(self, letter: Letter, lease: Lease) -> datetime | None:
        rendered = await self._renderers[letter.kind](letter)
        if rendered is None:
            await self._done([letter.id])
            return None
        await lease.confirm()
        if isinstance(rendered, CardNow):
            return await self._bring_up_to_date(letter, rendered)
        await self._post_note(letter, rendered)
        return None

    async def _bring_up_to_date(self, letter: Letter, card: CardNow) -> datetime | None:
        async with self._database.reading() as tx:
            sent, now = await outbox.sent_card(tx, letter.key), await tx.now()
        print_now = _fingerprint(card.message)
        if sent is None:
            async with self._database.transaction() as tx:
                before = await outbox.begin_post(tx, letter)
            await self._post_card(letter, card, print_now, letter.key, posted_before=before)
            return None
        if sent.fingerprint == print_now:
            await self._done([letter.id])
            return None
        next_edit_at = sent.sent_at + timedelta(seconds=card.edit_seconds)
        if next_edit_at > now:
            return next_edit_at
        await self._edit(letter, card, sent, print_now)
        return None

    async def _edit(self, letter: Letter, card: CardNow, sent: SentCard, print_now: str) -> None:
        try:
            await self._update(letter, card, sent, print_now)
        except SlackMessageGone:
            # Somebody deleted it: post it again, under an id that Slack has not seen.
            name = f"{letter.key}:{sent.message_ts}"
            await self._post_card(letter, card, print_now, name, posted_before=True)

    async def _update(self, letter: Letter, card: CardNow, sent: SentCard, print_now: str) -> None:
        await in_plain_if_need_be(
            card.message,
            lambda message: self._slack.update(sent.channel_id, sent.message_ts, message),
        )
        async with self._database.transaction() as tx:
            moved = SentCard(sent.key, sent.channel_id, sent.message_ts, print_now, await tx.now())
            await outbox.remember_card(tx, moved)
            await outbox.mark_sent(tx, [letter.id])

    async def _post_card(
        self, letter: Letter, card: CardNow, print_now: str, name: str, *, posted_before: bool
    ) -> None:
        """Post the card; when an earlier try may have arrived, Slack shows what that one said.

        Where it stands is remembered before it is edited: an edit that fails must not post again.
        """
        channel_id, message_ts = await in_plain_if_need_be(
            card.message,
            lambda message: self._slack.post(
                card.channel_id, message, thread_ts=None, client_msg_id=_client_msg_id(name)
            ),
        )
        shown = WHATEVER if posted_before else print_now
        async with self._database.transaction() as tx:
            standing = SentCard(letter.key, channel_id, message_ts, shown, await tx.now())
            await outbox.remember_card(tx, standing)
            if not posted_before:
                await outbox.mark_sent(tx, [letter.id])
        if posted_before:
            await self._update(letter, card, standing, print_now)

    async def _post_note(self, letter: Letter, note: Note) -> None:
        thread_ts, channel_id = None, note.channel_id
        if note.in_thread:
            async with self._database.reading() as tx:
                card = await outbox.sent_card(tx, letter.key)
            if card is not None:
                thread_ts, channel_id = card.message_ts, card.channel_id
        try:
            await in_plain_if_need_be(
                note.message,
                lambda message: self._slack.post(
                    channel_id,
                    message,
                    thread_ts=thread_ts,
                    client_msg_id=_client_msg_id(f"letter:{letter.id}"),
                ),
            )
        except SlackRefused as error:
            if error.error not in UNREACHABLE_PEOPLE:
                raise
            log.warning("outbox.unreachable", error=error.error)
            await self._done([letter.id], error.error)
        else:
            await self._done([letter.id])

    async def _done(self, ids: Sequence[int], failure: str | None = None) -> None:
        async with self._database.transaction() as tx:
            await outbox.mark_sent(tx, ids, failure)

    async def _in(self, seconds: float) -> datetime:
        async with self._database.reading() as tx:
            return await tx.now() + timedelta(seconds=seconds)


def _is_same_card(one: Letter, other: Letter) -> bool:
    return (one.kind, one.subject) == (other.kind, other.subject) and one.kind.endswith("card")


def _fingerprint(message: Message) -> str:
    payload = json.dumps(message.payload(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest()


def _client_msg_id(name: str) -> str:
    """Name the message, so that a repeated post after a lost answer can be recognised as one."""
    return str(uuid.uuid5(LETTER_NAMESPACE, name))
