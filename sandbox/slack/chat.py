"""The Web API's `chat.*` methods, which post messages, edit messages and return permalinks."""

from typing import Any

from sandbox.people import Channel
from sandbox.slack.messages import Json, Message
from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import UPDATE_TEXT, check_message
from sandbox.slack.workspace import Workspace, with_block_ids


def post_message(workspace: Workspace, args: Json) -> Json:
    """`chat.postMessage`. If a call repeats a `client_msg_id`, return the existing message."""
    channel = channel_to_post(workspace, args.get("channel"))
    check_message(args.get("text"), args.get("blocks"))
    twin = same_client_message(workspace, channel.id, args.get("client_msg_id"))
    message = twin or workspace.post(new_message(workspace, channel.id, args))
    return {"channel": channel.id, "ts": message.ts, "message": own(workspace, message)}


def update(workspace: Workspace, args: Json) -> Json:
    """`chat.update`. If a call has `text` but no `blocks`, the message loses its blocks."""
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
    """Return the channel with this ID if the channel is public or the bot is a member.

    Raises:
        Refusal: `channel_not_found`.
    """
    channel = workspace.channels.get(str(channel_id))
    hidden = channel and channel.is_private and workspace.bot_user_id not in channel.members
    if channel is None or hidden:
        raise Refusal("channel_not_found")
    return channel


def channel_to_post(workspace: Workspace, channel_id: Any) -> Channel:
    """Return the channel with this ID if the bot is allowed to post in the channel.

    A person's ID stands for the bot's direct messages with that person.

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
    """Return a new message from the bot without storing the message."""
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
    """Return the message in this channel that already has this `client_msg_id`, if there is one."""
    if not key:
        return None
    posted = (m for m in workspace.all_messages if m.channel == channel and not m.only_for)
    return next((m for m in posted if m.client_msg_id == key), None)


def own_message(workspace: Workspace, args: Json) -> Message:
    """Return the message that a call refers to, after checking that the bot is the author.

    Raises:
        Refusal: `channel_not_found`, `message_not_found`, `is_inactive` if the channel is archived,
            or `cant_update_message` if the bot is not the author.
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
    """Return one of the bot's messages in the form that Web API responses use."""
    ids = {"bot_id": workspace.bot_id, "app_id": workspace.app_id, "team": workspace.team_id}
    return {**message.as_slack(), **ids}
