"""The Web API's `views.*` methods, which open modals, update modals and publish Home tabs."""

from sandbox.slack.messages import Json, View
from sandbox.slack.refusals import Refusal
from sandbox.slack.validation import check_view
from sandbox.slack.workspace import Workspace


def views_open(workspace: Workspace, args: Json) -> Json:
    """`views.open` requires an unused trigger_id, and replaces any modal that is open."""
    trigger = workspace.use_trigger(args.get("trigger_id"))
    check_view(args.get("view"))
    return shown(workspace, workspace.open(trigger.user, args["view"]))


def views_update(workspace: Workspace, args: Json) -> Json:
    """`views.update` replaces a modal.

    If `hash` is given, it must match the modal's current hash.
    """
    view = workspace.views.get(str(args.get("view_id")))
    if view is None:
        raise Refusal("not_found")
    if args.get("hash") and args["hash"] != view.hash:
        raise Refusal("hash_conflict")
    check_view(args.get("view"))
    workspace.show(view, args["view"])
    return shown(workspace, view)


def views_publish(workspace: Workspace, args: Json) -> Json:
    """`views.publish` sets a person's Home tab.

    If `hash` is given, it must match the tab's current hash.
    """
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


def shown(workspace: Workspace, view: View) -> Json:
    """Return the response to a `views.*` call."""
    return {"view": view.as_slack(workspace.app_id, workspace.bot_id)}
