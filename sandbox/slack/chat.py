"""The Web API's `chat.*`: messages posted, edited and deleted."""

from typing import Any

from sandbox.people import Channel
from sandbox.slack.messages import Json, Message
from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import UPDATE_TEXT, check_message
from sandbox.slack.workspace import Workspace, with_block_ids


def post_message(workspace: Workspace, args: Json) -> Json:
    """`chat.postMessage`; a repeated `client_msg_id` returns the first message."""
    channel = channel_to_post(workspace, args.get("channel"))
    check_message(args.get("text"), args.get("blocks"))
    twin = same_client_message(workspace, channel.id, args.get("client_msg_id"))
    message = twin or workspace.post(new_message(workspace, channel.id, args))
    return {"channel": channel.id, "ts": message.ts, "message": own(workspace, message)}


def update(workspace: Workspace, args: Json) -> Json:
    """`chat.update`: only the bot's own messages; `text` without `blocks` removes the blocks."""
    message = own_message(workspace, args)
    if args.get("text") is not None or args.get("blocks") is not None:
        check_message(args.get("text"), args.get("blocks"), most_text=UPDATE_TEXT)
        body = with_block_ids({"blocks": args.get("blocks")}, message.ts)
        workspace.edit(message, args["text"], body["blocks"])
    shown = own(workspace, message)
    return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": shown}


def permalink(workspace: Workspace, args: Json) -> Json:
    """`chat.getPermalink`."""
    channel = known_channel(workspace, args.get("channel"))
    message = workspace.find(channel.id, str(args.get("message_ts")))
    if message is None:
        raise Refusal("message_not_found")
    number = message.ts.replace(".", "")
    address = f"https://{workspace.team_domain}.slack.com/archives/{channel.id}/p{number}"
    return {"channel": channel.id, "permalink": address}


def known_channel(workspace: Workspace, channel_id: Any) -> Channel:
    """Return a channel that is public, or private with the bot as a member.

    Raises:
        Refusal: `channel_not_found`.
    """
    channel = workspace.channels.get(str(channel_id))
    hidden = channel and channel.is_private and workspace.bot_user_id not in channel.members
    if channel is None or hidden:
        raise Refusal("channel_not_found")
    return channel


def channel_to_post(workspace: Workspace, channel_id: Any) -> Channel:
    """Return a channel in which the bot may write; a person's id means their direct messages.

    Raises:
        Refusal: `channel_not_found`, `is_archived` or `not_in_channel`.
    """
    if str(channel_id) in workspace.people:
        return workspace.direct(str(channel_id))
    channel = known_channel(workspace, channel_id)
    if channel.is_archived:
        raise Refusal("is_archived")
    if workspace.bot_user_id not in channel.members:
        raise Refusal("not_in_channel")
    return channel


def new_message(workspace: Workspace, channel: str, args: Json) -> Message:
    """Return a new message from the bot, which is not stored yet."""
    ts = workspace.next_ts()
    return Message(
        channel,
        ts,
        workspace.bot_user_id,
        text=args.get("text") or "",
        blocks=with_block_ids({"blocks": args.get("blocks")}, ts)["blocks"],
        thread_ts=args.get("thread_ts"),
        client_msg_id=args.get("client_msg_id"),
    )


def same_client_message(workspace: Workspace, channel: str, key: Any) -> Message | None:
    """Return the earlier message in this channel with the same `client_msg_id`, if any."""
    if not key:
        return None
    posted = (m for m in workspace.all_messages if m.channel == channel and not m.only_for)
    return next((m for m in posted if m.client_msg_id == key), None)


def own_message(workspace: Workspace, args: Json) -> Message:
    """Return the message that a call names, which must be the bot's.

    Raises:
        Refusal: `channel_not_found`, `is_inactive` in an archived channel, `message_not_found`, or
            `cant_update_message` for another author's message.
    """
    channel = known_channel(workspace, args.get("channel"))
    if channel.is_archived:
        raise Refusal("is_inactive")
    message = workspace.find(channel.id, str(args.get("ts")))
    if message is None:
        raise Refusal("message_not_found")
    if message.user != workspace.bot_user_id:
        raise Refusal("cant_update_message")
    return message


def own(workspace: Workspace, message: Message) -> Json:
    """Return one of the bot's messages as Web API responses show it."""
    ids = {"bot_id": workspace.bot_id, "app_id": workspace.app_id, "team": workspace.team_id}
    return {**message.as_slack(), **ids}
