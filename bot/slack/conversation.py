"""Direct messages to the bot: each is answered once, in its own conversation."""

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from bot.errors import DatabaseUnavailable, SlackError, SlackRateLimited, SlackUnreachable
from bot.ops.clock import Clock
from bot.slack import received_events
from bot.slack.messages.message import Message
from bot.slack.posting import in_plain_if_need_be
from bot.store.engine import Database

log = structlog.get_logger(__name__)

# Fixed, so that the answer to an event has the same client_msg_id in every process.
ANSWERS = uuid.UUID("0b1de5c4-6cb9-4f6e-9d0c-6f4d6a0a7f3e")
TRIES = 3
LONGEST_WAIT_SECONDS = 30.0
DONE = Message("Done.")


class SlackMessages(Protocol):
    """Posts and edits messages. Every method raises `SlackError`s."""

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post a message; return the channel id and ts from Slack."""
        ...

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit one of the bot's messages."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A message to answer: its event id, channel and thread."""

    event_id: str
    channel_id: str
    thread_ts: str | None


class Conversation:
    """Claims incoming messages and answers them."""

    def __init__(self, database: Database, slack: SlackMessages, clock: Clock) -> None:
        self._database = database
        self._slack = slack
        self._clock = clock

    async def take(self, event_id: str) -> bool:
        """Return True if this process should answer the event; another may have taken it.

        Raises:
            DatabaseUnavailable: The event can't be claimed.
        """
        async with self._database.transaction() as tx:
            return await received_events.claim(tx, event_id)

    async def answered(self, event_id: str) -> None:
        """Mark the event as answered. If that fails, a redelivery is answered again."""
        with suppress(DatabaseUnavailable):
            async with self._database.transaction() as tx:
                await received_events.answered(tx, event_id)

    def replies(self, message: WrittenMessage) -> "Replies":
        """Return the `Replies` for the message."""
        return Replies(self._slack, self._clock, message)


class Replies:
    """Answers one message; the answer replaces "Working on it"."""

    def __init__(self, slack: SlackMessages, clock: Clock, message: WrittenMessage) -> None:
        self._slack = slack
        self._clock = clock
        self._message = message
        self._posted: tuple[str, str] | None = None

    async def say(
        self, _response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message; return True if Slack accepted it."""
        place = self._message.channel_id or to
        for attempt in range(1, TRIES + 1):
            try:
                await in_plain_if_need_be(
                    message, lambda version: self._show(place, version, replace=replace)
                )
            except (SlackUnreachable, SlackRateLimited) as error:
                wait = getattr(error, "retry_after_seconds", 2.0 ** (attempt - 1))
                if attempt == TRIES or wait > LONGEST_WAIT_SECONDS:
                    return _refused(error)
                await self._clock.sleep(wait)
            except SlackError as error:
                return _refused(error)
            else:
                return True
        return False

    async def say_once(
        self,
        _response_url: str,
        message: Message,
        *,
        replace: bool = False,  # noqa: ARG002 - there is nothing to replace yet
    ) -> bool:
        """Like `say`, without retries: for messages that are soon replaced."""
        try:
            self._posted = await self._post(self._message.channel_id, message, "working")
        except SlackError as error:
            return _refused(error)
        return True

    async def take_back(self, _response_url: str) -> bool:
        """Replace "Working on it" by a sentence that says the work is done."""
        return await self.say("", DONE, to="", replace=True)

    async def _show(self, place: str, message: Message, *, replace: bool) -> None:
        if replace and self._posted is not None:
            await self._slack.update(*self._posted, message)
        else:
            # One client_msg_id, so a post repeated after a lost answer doesn't appear twice.
            await self._post(place, message, "answer")

    async def _post(self, place: str, message: Message, name: str) -> tuple[str, str]:
        client_msg_id = str(uuid.uuid5(ANSWERS, f"{name}:{self._message.event_id}"))
        thread_ts = self._message.thread_ts
        return await self._slack.post(
            place, message, thread_ts=thread_ts, client_msg_id=client_msg_id
        )


def _refused(error: SlackError) -> bool:
    log.warning("reply.refused", outcome=error.outcome, reason=error.sentence)
    return False
