"""Direct messages to the bot: each is answered once, in the conversation that it was written in."""

import uuid
from contextlib import suppress
from typing import Protocol

import structlog

from bot.clients.posting import in_plain_if_need_be
from bot.dataclass import dataclass
from bot.errors import DatabaseUnavailable, SlackError, SlackRateLimited, SlackUnreachable
from bot.ops.clock import Clock
from bot.store import received_events
from bot.store.engine import Database
from bot.ui.message import Message

log = structlog.get_logger(__name__)

# Fixed, so that the answer to an event has the same client_msg_id in every process.
ANSWERS = uuid.UUID("0b1de5c4-6cb9-4f6e-9d0c-6f4d6a0a7f3e")
TRIES = 3
LONGEST_WAIT_SECONDS = 30.0
DONE = Message("Done.")


class SlackMessages(Protocol):
    """Posts and edits. Every method raises `SlackError`s."""

    async def post(
        self, channel_id: str, message: Message, *, thread_ts: str | None, client_msg_id: str
    ) -> tuple[str, str]:
        """Post and return the channel id and the message's ts, as Slack gives them."""
        ...

    async def update(self, channel_id: str, message_ts: str, message: Message) -> None:
        """Edit a message of ours."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A message to answer: which event it came with, and where it stands."""

    event_id: str
    channel_id: str
    thread_ts: str | None


class Conversation:
    """Takes messages for answering, and answers them."""

    def __init__(self, database: Database, slack: SlackMessages, clock: Clock) -> None:
        self._database = database
        self._slack = slack
        self._clock = clock

    async def take(self, event_id: str) -> bool:
        """Return whether to answer the event: it may have come before, to any process.

        Raises:
            DatabaseUnavailable: Nobody knows.
        """
        async with self._database.transaction() as tx:
            return await received_events.claim(tx, event_id)

    async def answered(self, event_id: str) -> None:
        """Note that the event is answered; unless that can be, another delivery is answered too."""
        with suppress(DatabaseUnavailable):
            async with self._database.transaction() as tx:
                await received_events.answered(tx, event_id)

    def replies(self, message: WrittenMessage) -> "Replies":
        """Return what answers the message."""
        return Replies(self._slack, self._clock, message)


class Replies:
    """Answers one message; what says that it takes longer is replaced by the answer."""

    def __init__(self, slack: SlackMessages, clock: Clock, message: WrittenMessage) -> None:
        self._slack = slack
        self._clock = clock
        self._message = message
        self._posted: tuple[str, str] | None = None

    async def say(
        self, _response_url: str, message: Message, *, to: str, replace: bool = False
    ) -> bool:
        """Show the message; return whether Slack took it."""
        place = self._message.channel_id or to
        for attempt in range(1, TRIES + 1):
            try:
                await in_plain_if_need_be(
                    message, lambda one: self._show(place, one, replace=replace)
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
        """As `say`, without trying again: for what is soon replaced."""
        try:
            self._posted = await self._post(self._message.channel_id, message, "working")
        except SlackError as error:
            return _refused(error)
        return True

    async def take_back(self, _response_url: str) -> bool:
        """Say that all is done, where only that it takes longer was said."""
        return await self.say("", DONE, to="", replace=True)

    async def _show(self, place: str, message: Message, *, replace: bool) -> None:
        if replace and self._posted is not None:
            await self._slack.update(*self._posted, message)
        else:
            # Under one name: a post that is repeated after a lost answer is one message.
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
