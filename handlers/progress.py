"""Where an answer appears, and "Working on it" until then.

There are no other places, because a response_url can edit only one message.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from enum import Enum, auto
from typing import Any

from bot.slack.messages import replies
from bot.slack.messages.block_kit import Message
from handlers import payloads
from handlers.payloads import Body

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
    # Nobody waits for the answer to an event.
    NOWHERE = auto()


Answer = tuple[Message | None, str]
"""The message that a listener or its error results in, if any, and an outcome such as `ok`."""


async def show(
    work: Coroutine[Any, Any, Answer], place: AnswerAt, respond: Respond, body: Body
) -> str:
    """Show the answer, and say "Working on it" if that takes longer than half a second.

    If the program stops before there is an answer, tell the person. Return the outcome.
    """
    answering = asyncio.create_task(work)
    is_clicked = place is AnswerAt.CLICKED
    # True while "Working on it" is shown where the answer will appear.
    stands = False
    try:
        await asyncio.wait({answering}, timeout=PATIENCE_SECONDS)
        if not answering.done() and (is_clicked or place is AnswerAt.NEW_MESSAGE):
            stands = await respond(replies.WORKING, replace=is_clicked, tries=1)
        message, outcome = await answering
    except asyncio.CancelledError:
        answering.cancel()
        if stands:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOPPED_SECONDS):
                    await respond(replies.STOPPED, replace=True)
        raise
    is_ok = outcome == "ok"
    if message is None:
        message = replies.DONE if stands else None
    elif stands and is_clicked and not is_ok:
        action_id = payloads.text(payloads.clicked(body), "action_id")
        message = replies.with_retry(message, action_id, payloads.value(body))
    if message is not None and place is not AnswerAt.NOWHERE:
        await respond(message, replace=stands or (is_clicked and is_ok))
    return outcome
