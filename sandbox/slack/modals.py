"""The Web API's `views.*`: modals opened, pushed and updated, and Home tabs published."""

from sandbox.slack.messages import Json, View
from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import check_view
from sandbox.slack.workspace import Workspace

MOST_STACKED = 3


def views_open(workspace: Workspace, args: Json) -> Json:
    """`views.open`: needs a fresh trigger_id; a modal that was open gives way."""
    trigger = workspace.use_trigger(args.get("trigger_id"))
    check_view(args.get("view"))
    below = workspace.open_view(trigger.user)
    if below:
        workspace.close(below, everything=True)
    return shown(workspace, workspace.open(trigger.user, args["view"]))


def views_push(workspace: Workspace, args: Json) -> Json:
    """`views.push`: on top of the modal in which the trigger_id arose, at most three deep."""
    trigger = workspace.use_trigger(args.get("trigger_id"))
    check_view(args.get("view"))
    if trigger.view is None or trigger.view.id not in workspace.views:
        raise Refusal("not_found")
    if workspace.depth(trigger.user) >= MOST_STACKED:
        raise Refusal("push_limit_reached")
    return shown(workspace, workspace.open(trigger.user, args["view"]))


def views_update(workspace: Workspace, args: Json) -> Json:
    """`views.update` by `view_id` or `external_id`; with `hash` only if nothing changed since."""
    view = find_view(workspace, args)
    if args.get("hash") and args["hash"] != view.hash:
        raise Refusal("hash_conflict")
    check_view(args.get("view"))
    workspace.show(view, args["view"])
    return shown(workspace, view)


def views_publish(workspace: Workspace, args: Json) -> Json:
    """`views.publish`; with `hash` only if the person's Home still has that one."""
    user = str(args.get("user_id"))
    if user not in workspace.people:
        raise Refusal("user_not_found")
    home = workspace.homes.get(user)
    if args.get("hash") and (home is None or args["hash"] != home.hash):
        raise Refusal("hash_conflict")
    check_view(args.get("view"))
    if args["view"].get("type") != "home":
        raise Refusal("invalid_arguments")
    return shown(workspace, workspace.publish(user, args["view"]))


def find_view(workspace: Workspace, args: Json) -> View:
    """The open modal that a call names.

    Raises:
        Refusal: `not_found`: never opened, or closed by now.
    """
    if args.get("view_id"):
        found = workspace.views.get(str(args["view_id"]))
    else:
        key = args.get("external_id")
        held = (v for v in workspace.views.values() if v.body.get("external_id") == key)
        found = next(held, None) if key else None
    if found is None:
        raise Refusal("not_found")
    return found


def shown(workspace: Workspace, view: View) -> Json:
    """The answer of every `views.*` method."""
    return {"view": view.as_slack(workspace.app_id, workspace.bot_id)}
