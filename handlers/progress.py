"""Where an answer appears, and "Working on it" until then.

There are no other places, because a response_url can edit only one message.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum, auto

from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message

PATIENCE_SECONDS = 0.5
# The time limit at shutdown for telling people that the program has stopped.
STOPPED_SECONDS = 0.5

Respond = Callable[..., Awaitable[bool]]
"""Sends a message as `Replies.say` does, to the person who gets the answer."""


class AnswerAt(Enum):
    """Where an answer appears."""

    # In a new message below the clicked message, which stays unchanged. "Working on it" isn't shown
    # there, because nothing could replace it.
    BELOW = auto()
    # In a new message, which replaces "Working on it".
    NEW_MESSAGE = auto()
    # In place of the clicked message. An error leaves the clicked message there.
    CLICKED = auto()
    # As BELOW, for a click that only opens a form, or that a job answers.
    ANSWER_ONLY = auto()
    # Nobody waits for the answer to an event.
    NOWHERE = auto()


QUIET = frozenset({AnswerAt.BELOW, AnswerAt.ANSWER_ONLY, AnswerAt.NOWHERE})


class Progress:
    """Shows an answer, and says "Working on it" if that takes longer than half a second."""

    def __init__(self, place: AnswerAt, respond: Respond, action_id: str, value: str) -> None:
        self._place = place
        self._respond = respond
        self._action_id = action_id
        self._value = value
        self._is_late = False
        self._is_answered = False
        # True while "Working on it" is shown where the answer will appear.
        self._stands = False
        self._notice = asyncio.create_task(self._wait())

    async def show(self, message: Message | None) -> None:
        """Show the answer, if there is one."""
        await self._settle()
        if message is None and self._stands and self._place is AnswerAt.NEW_MESSAGE:
            message = replies.DONE
        if message is not None:
            replace = self._stands or self._place is AnswerAt.CLICKED
            await self._respond(message, replace=replace)

    async def fail(self, message: Message) -> None:
        """Show why there is no answer."""
        await self._settle()
        if self._stands and self._place is AnswerAt.CLICKED:
            message = replies.with_retry(message, self._action_id, self._value)
        if self._place is not AnswerAt.NOWHERE:
            await self._respond(message, replace=self._stands)

    async def aclose(self) -> None:
        """Stop waiting. If nothing was shown, the program stops: tell the person."""
        self._notice.cancel()
        if self._stands and not self._is_answered:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOPPED_SECONDS):
                    await self._respond(replies.STOPPED, replace=True)

    async def _wait(self) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)
        self._is_late = True
        if self._place not in QUIET:
            replace = self._place is AnswerAt.CLICKED
            self._stands = await self._respond(replies.WORKING, replace=replace, tries=1)

    async def _settle(self) -> None:
        self._is_answered = True
        if not self._is_late:
            self._notice.cancel()
        await asyncio.wait({self._notice})
