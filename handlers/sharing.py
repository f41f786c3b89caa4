"""The button `Share in channel`, which shows an answer to everyone in the channel."""

import secrets
from dataclasses import replace

from bot.app import Gatehouse
from bot.errors import Conflict, Refused, SlackError, SlackRefused, SlackUnreachable
from bot.permissions import Person, Role
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import Message
from handlers.listening import Listening
from handlers.payloads import Payload

SHARED_BEFORE = "This answer has already been shared."
ONLY_HERE = "Answers can be shared only in channels, not in direct or group messages."
OTHER_WORKSPACE = "This channel is shared with another workspace, so I can't share answers here."
NOT_SEEN = (
    "I can't see whether this channel is shared with another workspace. Add Gatehouse to the"
    " channel, and try again."
)
UNSURE = "Slack didn't say whether it posted the answer. Please look for it in the channel."


def with_share(message: Message, command: str, payload: Payload) -> Message:
    """Add the button to the answer to `command`, unless it's shown where it can't be shared."""
    channel_id = payload.channel_id
    # The answer's ID makes sure that it's shared only once.
    value = f"{secrets.token_hex(8)} {command}"
    is_group = payload.first("channel.name", "channel_name").startswith("mpdm-")
    is_direct = is_group or channel_id.startswith("D")
    if not channel_id or is_direct or len(value) > block_kit.VALUE_CHARACTERS:
        return message
    return message.with_buttons(block_kit.button("Share in channel", ids.SHARE, value))


async def share(listening: Listening, bot: Gatehouse, person: Person, payload: Payload) -> None:
    """Handle the button: post the answer as a viewer sees it now, unless it has been shared.

    Raises:
        Refused: Answers can't be shared in this conversation.
        Conflict: The answer has been shared before, or Slack didn't say whether it was now.
    """
    client = bot.slack.client
    received = bot.slack.received
    answer_id, _, command = payload.value.partition(" ")
    try:
        channel = await client.channel(payload.channel_id)
    except SlackRefused as error:
        raise Refused(NOT_SEEN) from error
    if channel.get("is_im") or channel.get("is_mpim"):
        raise Refused(ONLY_HERE)
    if client.is_shared(channel):
        raise Refused(OTHER_WORKSPACE)
    viewer = replace(person, roles=frozenset({Role.VIEWER}), groups=frozenset())
    answer = await listening.run(command, viewer, Payload())
    now = await bot.database.now()
    shared_by = f"Shared by {text.escape(person.name, 80)} · {text.time(now)}"
    message = (answer or Message("")).without_buttons().plus(block_kit.context(shared_by))
    if not await received.claim(f"share:{answer_id}"):
        raise Conflict(SHARED_BEFORE)
    try:
        await bot.slack.replies.share(payload.response_url, message)
    except SlackUnreachable as error:
        raise Conflict(UNSURE) from error
    except SlackError:
        await received.release(f"share:{answer_id}")
        raise
