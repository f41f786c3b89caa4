"""The answer to `/gatehouse audit`, with a sentence for each entry in the audit log."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bot.permissions import Permission
from bot.services.calls import client_named
from bot.slack.messages import block_kit, text
from bot.slack.messages.block_kit import TEXT_CHARACTERS, Message
from bot.store.audit_entry import BOT, RecordedEntry

ENTRY_CHARACTERS = 600
DETAIL_CHARACTERS = 200
IDENTITIES_SHOWN = 3
MOST_CHUNKS = 3
_PERMISSIONS = {permission.name.lower(): permission for permission in Permission}


@dataclass(frozen=True)
class Names:
    """The names of people by Slack user ID, and the names of flows by uppercase SID."""

    people: Mapping[str, str] = field(default_factory=dict)
    flows: Mapping[str, str] = field(default_factory=dict)

    def person(self, actor: str) -> str:
        """Return the person's name in bold, or the ID if the name is unknown."""
        name = "Gatehouse" if actor == BOT else self.people.get(actor, actor)
        if client := client_named(actor):
            name = f"{client} (gateway)"
        return f"*{text.escape(name, 80)}*"

    def flow(self, sid: object) -> str:
        """Return the flow's alias in bold, or its SID if it has no alias."""
        return f"*{text.escape(self.flows.get(str(sid).upper(), str(sid)), 60)}*"


def people_in(entries: Sequence[RecordedEntry]) -> set[str]:
    """Return the IDs of all actors and approvers in the entries."""
    people = {entry.actor for entry in entries if client_named(entry.actor) is None}
    for entry in entries:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            people |= {str(approver) for approver in json.loads(entry.detail)["approvers"]}
    return people


def audit(entries: Sequence[RecordedEntry], head: str, names: Names) -> Message:
    """Return a message with the latest entries, newest first, and the hash of the newest entry."""
    if not entries:
        markup = "The audit log is empty."
        return Message(markup, (block_kit.section(markup),))
    lines = [
        text.cut(
            f"• #{entry.position} {text.time(entry.at)} – {_sentence(entry, names)}",
            ENTRY_CHARACTERS,
        )
        for entry in entries
    ]
    footer = (
        f"Latest hash: {text.code(head)}. Save it to detect deleted entries later with"
        " `gatehouse audit verify --head`."
    )
    chunks = block_kit.paragraphs(lines)[:MOST_CHUNKS]
    shown = sum(chunk.count("\n") + 1 for chunk in chunks)
    title = f"*Last {text.count(shown, 'audit entry', 'audit entries')}*"
    if shown < len(lines):
        title += " (as many as fit in one message)"
    fallback = text.cut("\n".join((title, *chunks)), TEXT_CHARACTERS - len(footer) - 1)
    sections = [block_kit.section(part) for part in (title, *chunks)]
    return Message(f"{fallback}\n{footer}", (*sections, block_kit.context(footer)))


def head_message(position: int, head: str) -> Message:
    """Return a message with the audit log's head (the latest hash), for later verification."""
    entries = text.count(position, "entry", "entries")
    command = text.code(f"gatehouse audit verify --head {head}")
    line = (
        f"The audit log has {entries}, and its latest hash is {text.code(head)}. To check later"
        f" that no entry has changed, run {command}"
    )
    return Message(line, (block_kit.section(line),))


def _sentence(entry: RecordedEntry, names: Names) -> str:
    with suppress(
        *(ValueError, ArithmeticError, KeyError, TypeError, AttributeError, RecursionError)
    ):
        describe = TOPICS[entry.action.partition(".")[0]]
        if known := describe(entry, json.loads(entry.detail), names):
            return known
    event = f"{text.escape(entry.action, 64)} {text.escape(entry.subject, 80)}"
    return f"{names.person(entry.actor)}: {event} {text.code(entry.detail, DETAIL_CHARACTERS)}"


def _preset(entry: RecordedEntry, detail: Mapping[str, Any], names: Names) -> str:
    actor, name = names.person(entry.actor), text.code(f"@{entry.subject}", 60)
    if entry.action == "preset.deleted":
        return f"{actor} deleted the preset {name} ({_identities(detail['before'])})"
    before = f" (before: {_identities(detail['before'])})" if detail["before"] else ""
    return f"{actor} saved the preset {name}: {_identities(detail['after'])}{before}"


def _request(entry: RecordedEntry, detail: Mapping[str, Any], names: Names) -> str | None:
    actor = names.person(entry.actor)
    reference = f"(request {text.code(entry.subject[:8])})"
    reason = f": {text.escape(detail['reason'], 160)}" if detail.get("reason") else ""
    verb = entry.action.partition(".")[2]
    if verb == "expired":
        over = "because the requested access would already have ended"
        why = over if detail.get("is_over") else "without a decision"
        return f"A request expired {why} {reference}"
    if verb == "refused":
        return f"{actor} couldn't {text.escape(detail['act'], 20)} a request {reference}{reason}"
    change = _request_change(verb, detail, actor, names)
    return f"{change} {reference}{reason}" if change else None


BY_ITSELF = {
    "failed": "failed",
    "approved_by_rule": "was approved by a rule",
    "asked_again": "needs approval again, because its effect has changed",
    "escalated": "was escalated because it was pending too long",
}


def _request_change(verb: str, detail: Mapping[str, Any], actor: str, names: Names) -> str | None:
    flow = names.flow(detail["flow"])
    if verb in BY_ITSELF:
        return f"A change to {flow} {BY_ITSELF[verb]}"
    if verb == "applied":
        approvers = [names.person(approver) for approver in detail["approvers"]]
        # What a rule or `now` applied without them is in the entry before.
        by = f", approved by {', '.join(approvers)}" if approvers else ""
        change = _change(detail, flow, ("added", "removed")) or f"made no changes to {flow}"
        return f"Gatehouse {change}{by}"
    if verb in {"created", "created_without_approval"}:
        change = _change(detail, flow, ("add", "remove")) or f"change end dates for {flow}"
        return f"{actor} asked to {change}{'' if verb == 'created' else ' without approval'}"
    if verb in {"approved", "denied", "cancelled", "retried"}:
        return f"{actor} {verb} a change to {flow}"
    return None


def _change(detail: Mapping[str, Any], flow: str, verbs: tuple[str, str]) -> str:
    parts = []
    if detail["additions"]:
        parts.append(f"{verbs[0]} {_identities(detail['additions'])} to {flow}")
    if detail["removals"]:
        parts.append(f"{verbs[1]} {_identities(detail['removals'])} from {flow}")
    return " and ".join(parts)


def _identities(identities: Sequence[str]) -> str:
    shown = ", ".join(text.identity(identity, 60) for identity in identities[:IDENTITIES_SHOWN])
    rest = len(identities) - IDENTITIES_SHOWN
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _list(entry: RecordedEntry, detail: Mapping[str, Any], names: Names) -> str | None:
    if entry.action == "grant.ended":
        gone = " (already removed)" if detail["was_gone"] else ""
        flow = names.flow(detail["flow"])
        return f"Access to {flow} ended for {text.identity(detail['identity'], 60)}{gone}"
    if entry.action == "grant.end_failed":
        flow, reason = names.flow(detail["flow"]), text.escape(detail["reason"], 160)
        return f"Access to {flow} expired but couldn't be removed: {reason}"
    if entry.action == "flow.changed":
        before, after = len(detail["before"]), text.count(len(detail["after"]), "test user")
        return f"The test users of {names.flow(entry.subject)} changed: {before:,} → {after}"
    return None


def _other(entry: RecordedEntry, detail: Mapping[str, Any], names: Names) -> str | None:
    actor, subject = names.person(entry.actor), text.escape(entry.subject, 80)
    if entry.action == "permission.refused":
        permission = _PERMISSIONS.get(entry.subject)
        wanted = f"permission to {permission}" if permission else "access"
        reason = text.escape(detail["reason"], 60).replace("_", " ")
        return f"{actor} was refused {wanted} ({reason})"
    if entry.action == "plan.set":
        before, plan = text.escape(detail["before"], 30), text.escape(detail["plan"], 30)
        return f"{actor} changed the plan of {subject} from {before} to {plan}"
    if entry.action == "alert.muted":
        return f"{actor} muted alerts about {subject} for {text.duration(detail['seconds'])}"
    if entry.action == "alert.unmuted":
        return f"{actor} unmuted alerts about {subject}"
    return None


def _write(entry: RecordedEntry, detail: Mapping[str, Any], names: Names) -> str:
    status, size = detail["status"], int(detail["size"])
    outcome = f"status {int(status)}" if status else "the outcome is unknown"
    call = text.code(f"{detail['method']} {detail['path']}", 160)
    body = f"{text.count(size, 'byte')}, SHA-256 {text.code(detail['sha256'][:12])}"
    where = text.escape(detail["organization"], 80)
    return f"{names.person(entry.actor)} sent {call} for {where} ({body}): {outcome}"


TOPICS = {"gateway": _write, "request": _request, "flow": _list, "grant": _list, "preset": _preset}
TOPICS |= dict.fromkeys(("permission", "plan", "alert"), _other)
