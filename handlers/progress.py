"""Where an answer appears, and "Working on it" until then.

There are no other places, because a response_url can edit only one message.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message
from bot.slack.replies import TRIES

PATIENCE_SECONDS = 0.5
# The time limit at shutdown for telling people that the program has stopped.
STOPPED_SECONDS = 0.5


class Respond(Protocol):
    """Sends a message to the person and returns True if Slack accepted it."""

    async def __call__(
        self, message: Message, *, replace: bool = False, tries: int = TRIES
    ) -> bool:
        """Send it in place of the message that the answer belongs to, if `replace` is True."""
        ...


class Below:
    """Answers in a new message below the clicked message, which stays unchanged.

    As a context manager, its subclasses say "Working on it" if the block takes longer than half a
    second. If the program stops meanwhile, they tell the person not to wait for an answer. `Below`
    itself doesn't, because a response_url can't replace that message.
    """

    def __init__(self, respond: Respond, action_id: str = "", value: str = "") -> None:
        self._respond = respond
        self._action_id = action_id
        self._value = value
        self._is_late = False
        # True while "Working on it" is shown where the answer will appear.
        self._stands = False

    async def show(self, message: Message | None) -> None:
        """Show the answer, if there is one."""
        await self._settle()
        await self._show(message)

    async def fail(self, message: Message) -> None:
        """Show why there is no answer."""
        await self._settle()
        await self._fail(message)

    async def __aenter__(self) -> Self:
        """Start to wait for the answer."""
        self._notice = asyncio.create_task(self._wait())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop waiting."""
        self._notice.cancel()
        if isinstance(error, asyncio.CancelledError) and self._stands:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOPPED_SECONDS):
                    await self._respond(replies.STOPPED, replace=True)

    async def _wait(self) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)
        self._is_late = True
        await self._say_working()

    async def _settle(self) -> None:
        if not self._is_late:
            self._notice.cancel()
        await asyncio.wait({self._notice})

    async def _say_working(self) -> None:
        pass

    async def _show(self, message: Message | None) -> None:
        if message is not None:
            await self._respond(message)

    async def _fail(self, message: Message) -> None:
        await self._respond(message, replace=self._stands)


class NewMessage(Below):
    """Answers in a new message, which replaces "Working on it"."""

    async def _say_working(self) -> None:
        self._stands = await self._respond(replies.WORKING, tries=1)

    async def _show(self, message: Message | None) -> None:
        if message is None and self._stands:
            message = replies.DONE
        if message is not None:
            await self._respond(message, replace=self._stands)


class Clicked(Below):
    """Replaces the clicked message by the answer. An error leaves the clicked message in place."""

    async def _say_working(self) -> None:
        self._stands = await self._respond(replies.WORKING, replace=True, tries=1)

    async def _show(self, message: Message | None) -> None:
        if message is not None:
            await self._respond(message, replace=True)

    async def _fail(self, message: Message) -> None:
        if self._stands:
            message = replies.with_retry(message, self._action_id, self._value)
        await self._respond(message, replace=self._stands)


class AnswerOnly(Below):
    """Answers as `Below` does. Usually, a form opens or a job answers instead."""


class Nowhere(AnswerOnly):
    """Shows nothing, because nobody waits for the answer to an event."""

    async def _show(self, message: Message | None) -> None:
        pass

    async def _fail(self, message: Message) -> None:
        pass
