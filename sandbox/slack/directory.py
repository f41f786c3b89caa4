"""The Web API methods that look up the bot, people, groups and channels."""

from sandbox.people import Channel, Group, Person
from sandbox.slack.chat import known_channel
from sandbox.slack.messages import Json
from sandbox.slack.refusals import Refusal
from sandbox.slack.workspace import Workspace


def auth_test(workspace: Workspace, _args: Json) -> Json:
    """`auth.test` returns the bot and the workspace that the token belongs to."""
    return {
        "url": f"https://{workspace.team_domain}.slack.com/",
        "team": "Gatehouse sandbox",
        "user": "gatehouse",
        "team_id": workspace.team_id,
        "user_id": workspace.bot_user_id,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": workspace.is_organization_wide,
    }


def users_info(workspace: Workspace, args: Json) -> Json:
    """`users.info` returns one person, who may belong to another workspace."""
    need_scope(workspace, "users:read")
    person = workspace.people.get(str(args.get("user")))
    if person is None:
        raise Refusal("user_not_found")
    return {"user": as_user(workspace, person)}


def users_list(workspace: Workspace, args: Json) -> Json:
    """`users.list` returns all people, including people whose accounts are deactivated."""
    return _page(
        args, "members", [as_user(workspace, person) for person in workspace.people.values()]
    )


def conversations_list(workspace: Workspace, args: Json) -> Json:
    """`conversations.list` returns public channels, and private channels that the bot is in."""
    types = str(args.get("types") or "public_channel").split(",")
    shown = []
    for channel in workspace.channels.values():
        kind = "private_channel" if channel.is_private else "public_channel"
        hidden = channel.is_private and workspace.bot_user_id not in channel.members
        if kind in types and not channel.is_direct and not hidden:
            need_scope(workspace, read_scope(channel))
            shown.append(as_channel(workspace, channel))
    return _page(args, "channels", shown)


def _page(args: Json, name: str, rows: list[Json]) -> Json:
    start, limit = int(args.get("cursor") or 0), int(args.get("limit") or 100)
    end = start + limit
    cursor = str(end) if end < len(rows) else ""
    return {name: rows[start:end], "response_metadata": {"next_cursor": cursor}}


def as_user(workspace: Workspace, person: Person) -> Json:
    """Return a person in the form that the Web API uses."""
    return {
        "id": person.id,
        "team_id": person.team_id,
        "name": person.handle,
        "deleted": person.deleted,
        "real_name": person.name,
        "tz": person.tz,
        "profile": {"real_name": person.name, "display_name": person.handle},
        "is_restricted": person.is_restricted,
        "is_ultra_restricted": person.is_ultra_restricted,
        "is_bot": person.is_bot,
        "is_stranger": person.team_id != workspace.team_id,
    }


def as_group(workspace: Workspace, group: Group) -> Json:
    """Return a user group in the form that the Web API uses."""
    return {
        "id": group.id,
        "team_id": workspace.team_id,
        "is_usergroup": True,
        "name": group.name,
        "handle": group.handle,
        "user_count": len(group.members),
        "users": list(group.members),
    }


def usergroups_list(workspace: Workspace, args: Json) -> Json:
    """`usergroups.list` returns all user groups, with their members if `include_users` is set."""
    shown = [as_group(workspace, group) for group in workspace.groups.values()]
    if str(args.get("include_users", "")).lower() not in {"1", "true"}:
        for group in shown:
            del group["users"]
    return {"usergroups": shown}


def usergroup_users(workspace: Workspace, args: Json) -> Json:
    """`usergroups.users.list` returns the IDs of a group's members."""
    group = workspace.groups.get(str(args.get("usergroup")))
    if group is None:
        raise Refusal("no_such_subteam")
    return {"users": list(group.members)}


def as_channel(workspace: Workspace, channel: Channel) -> Json:
    """Return a channel in the form that the Web API uses."""
    shown: Json = {
        "id": channel.id,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private and not channel.is_direct,
        "is_im": channel.is_direct,
        "is_mpim": channel.name.startswith("mpdm-"),
        "is_shared": channel.is_ext_shared or channel.is_org_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": channel.is_org_shared,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_member": workspace.bot_user_id in channel.members,
        "context_team_id": workspace.team_id,
    }
    return (
        {**shown, "user": channel.partner} if channel.is_direct else {**shown, "name": channel.name}
    )


def conversations_info(workspace: Workspace, args: Json) -> Json:
    """`conversations.info` returns one channel.

    The required scope depends on the kind of channel.
    """
    channel = known_channel(workspace, args.get("channel"))
    need_scope(workspace, read_scope(channel))
    return {"channel": as_channel(workspace, channel)}


def read_scope(channel: Channel) -> str:
    """Return the scope required to read this kind of channel."""
    if channel.is_direct:
        return "im:read"
    return "groups:read" if channel.is_private else "channels:read"


def need_scope(workspace: Workspace, scope: str) -> None:
    """Check that the token has the required scope.

    Raises:
        Refusal: The token does not have the required scope.
    """
    if scope and scope not in workspace.scopes:
        raise Refusal("missing_scope", needed=scope, provided=",".join(workspace.scopes))
