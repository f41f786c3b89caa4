"""The answer to `/gatehouse audit`, with a line for each entry in the audit log."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.slack.messages import block_kit, text
from bot.slack.messages.block_kit import TEXT_CHARACTERS, Message
from bot.store.audit_entry import RecordedEntry

ENTRY_CHARACTERS = 600
DETAIL_CHARACTERS = 200
VALUES_SHOWN = 3
MOST_CHUNKS = 3


def audit(entries: Sequence[RecordedEntry], head: str, names: Mapping[str, str]) -> Message:
    """Return a message with the latest entries, newest first, and the hash of the newest entry.

    `names` has the names of people by Slack user ID, and of flows by uppercase SID.
    """
    if not entries:
        return Message.of("The audit log is empty.")
    lines = [
        text.cut(
            f"• #{entry.position} {text.time(entry.at)} – {_line(entry, names)}",
            ENTRY_CHARACTERS,
        )
        for entry in entries
    ]
    footer = (
        f"Latest hash: {text.code(head)}. Save this hash, so that `gatehouse audit verify"
        " --head` can detect deleted entries later."
    )
    chunks = block_kit.paragraphs(lines)[:MOST_CHUNKS]
    shown = sum(chunk.count("\n") + 1 for chunk in chunks)
    title = f"*Last {text.count(shown, 'audit entry', 'audit entries')}*"
    if shown < len(lines):
        title += ". This message has no room for more entries."
    message = Message.of(title).plus(lines=chunks)
    fallback = text.cut(message.text, TEXT_CHARACTERS - len(footer) - 1)
    return replace(message, text=fallback).plus(block_kit.context(footer))


def head_message(position: int, head: str) -> Message:
    """Return a message with the audit log's head (the latest hash), for later verification."""
    entries = text.count(position, "entry", "entries")
    command = text.code(f"gatehouse audit verify --head {head}")
    return Message.of(
        f"The audit log has {entries}, and its latest hash is {text.code(head)}. To check later"
        f" that no entry has changed, run {command}"
    )


# The sentence for each action. `{actor}`, `{subject}` and details stand for their values. Details
# that a sentence doesn't name follow it.
SENTENCES = {
    "request.created": "{actor} asked for a change to {flow} (request {subject})",
    "request.created_without_approval": (
        "{actor} asked to change {flow} without approval (request {subject})"
    ),
    "request.approved": "{actor} approved a change to {flow} (request {subject})",
    "request.approved_by_rule": "A rule approved a change to {flow} (request {subject})",
    "request.denied": "{actor} denied a change to {flow} (request {subject})",
    "request.cancelled": "{actor} cancelled a change to {flow} (request {subject})",
    "request.retried": "{actor} retried a change to {flow} (request {subject})",
    "request.applied": "Gatehouse applied a change to {flow} (request {subject})",
    "request.failed": "A change to {flow} failed (request {subject})",
    "request.asked_again": "A change to {flow} needs approval again (request {subject})",
    "request.escalated": "A change to {flow} waited too long for approval (request {subject})",
    "request.expired": "A request expired (request {subject})",
    "request.refused": "{actor} couldn't {act} a request (request {subject})",
    "flow.sent": "Gatehouse sent {subject} a new list of test users",
    "flow.changed": "The test users of {subject} changed",
    "grant.ended": "Access to {flow} ended for {identity}",
    "grant.end_failed": "Access to {flow} expired, but Gatehouse couldn't remove it",
    "permission.refused": "{actor} was denied the permission {subject}",
    "plan.set": "{actor} changed the plan of {subject} from {before} to {plan}",
    "alert.muted": "{actor} muted alerts about {subject}",
    "preset.saved": "{actor} saved the preset {subject}",
    "preset.deleted": "{actor} deleted the preset {subject}",
    "gateway.write": "{actor} sent {method} {path} for {organization} ({size} bytes): {status}",
}


def _line(entry: RecordedEntry, names: Mapping[str, str]) -> str:
    """Return a sentence about the entry, and the details that the sentence doesn't have."""
    actor = _shown(entry.actor, names)
    subject = _shown(entry.subject, names)
    try:
        details = {
            name: _shown("unknown" if value is None else value, names)
            for name, value in json.loads(entry.detail).items()
            # Of empty details, only the status and size of a write say something.
            if name in {"status", "size"} or (value and name != "request_id")
        }
    except (ValueError, AttributeError, RecursionError):
        details = {"detail": text.code(entry.detail, DETAIL_CHARACTERS)}
    action = text.escape(entry.action, 64)
    sentence = SENTENCES.get(entry.action, "{actor}: {action} {subject}")
    rest = [
        f"{text.escape(name.replace('_', ' '), 40)}: {value}"
        for name, value in details.items()
        if f"{{{name}}}" not in sentence
    ]
    values = {**details, "actor": actor, "action": action, "subject": subject}
    return " · ".join([sentence.format_map(defaultdict(lambda: "unknown", values)), *rest])


def _shown(value: object, names: Mapping[str, str]) -> str:
    """Return a name in bold or a value as code, or the first of several."""
    if isinstance(value, list):
        shown = ", ".join(_shown(part, names) for part in value[:VALUES_SHOWN])
        rest = len(value) - VALUES_SHOWN
        return f"{shown} and {rest:,} more" if rest > 0 else shown
    name = names.get(str(value).upper())
    return f"*{text.escape(name, 80)}*" if name else text.identity(str(value), 80)
