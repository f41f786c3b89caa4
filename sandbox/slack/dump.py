"""Describes the visible state of a workspace, for the error message of a test that times out."""

from sandbox.slack.messages import Message
from sandbox.slack.workspace import Call, Workspace


def dump(workspace: Workspace) -> str:
    """List the messages, the open modals and the most recent calls, one per line."""
    views = workspace.views.values()
    return "\n".join(
        [
            *(dump_message(message) for message in workspace.all_messages),
            *(f"modal of {v.user}: {v.title!r} {v.labels} {v.errors}" for v in views),
            *(dump_call(call) for call in workspace.calls[-20:]),
        ]
    )


def dump_message(message: Message) -> str:
    """Describe a message in one line."""
    whose = f" only for {message.only_for}" if message.only_for else ""
    gone = " (deleted)" if message.deleted else ""
    said = f"{message.user}: {message.all_text!r} {message.buttons}"
    return f"{message.channel}{whose}{gone} {said}"


def dump_call(call: Call) -> str:
    """Describe a Web API call in one line."""
    return f"call {call.method} -> {call.status} {(call.answer or {}).get('error', '')}"
