"""Everything that can be seen in a workspace, as text: what a test that waited in vain shows."""

from sandbox.slack.messages import Message
from sandbox.slack.workspace import Call, Workspace


def dump(workspace: Workspace) -> str:
    """The messages, the open modals and the last calls, one a line."""
    views = workspace.views.values()
    return "\n".join(
        [
            *(dump_message(message) for message in workspace.all_messages),
            *(f"modal of {v.user}: {v.title!r} {v.labels} {v.errors}" for v in views),
            *(dump_call(call) for call in workspace.calls[-20:]),
        ]
    )


def dump_message(message: Message) -> str:
    """A message in one line."""
    whose = f" only for {message.only_for}" if message.only_for else ""
    gone = " (deleted)" if message.deleted else ""
    said = f"{message.user}: {message.all_text!r} {message.buttons}"
    return f"{message.channel}{whose}{gone} {said}"


def dump_call(call: Call) -> str:
    """A Web API call in one line."""
    return f"call {call.method} -> {call.status} {(call.answer or {}).get('error', '')}"
