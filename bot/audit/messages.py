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
        return SENTENCES[entry.action].format(_Words(entry, json.loads(entry.detail), names))
    event = f"{text.escape(entry.action, 64)} {text.escape(entry.subject, 80)}"
    return f"{names.person(entry.actor)}: {event} {text.code(entry.detail, DETAIL_CHARACTERS)}"


@dataclass(frozen=True)
class _Words:
    """The words in the sentence about an entry, escaped. `words["x"]` is the detail named `x`."""

    entry: RecordedEntry
    detail: Mapping[str, Any]
    names: Names

    def __getitem__(self, name: str) -> str:
        return text.escape(str(self.detail[name]), 160)

    @property
    def actor(self) -> str:
        return self.names.person(self.entry.actor)

    @property
    def subject(self) -> str:
        return text.escape(self.entry.subject, 80)

    @property
    def flow(self) -> str:
        return self.names.flow(self.detail.get("flow", self.entry.subject))

    @property
    def request(self) -> str:
        """The request's reference and reason, at the end of a sentence."""
        reason = f": {self['reason']}" if self.detail.get("reason") else ""
        return f"(request {text.code(self.entry.subject[:8])}){reason}"

    @property
    def wanted(self) -> str:
        return self._change("add", "remove") or f"change end dates for {self.flow}"

    @property
    def done(self) -> str:
        return self._change("added", "removed") or f"made no changes to {self.flow}"

    def _change(self, add: str, remove: str) -> str:
        parts = []
        if self.detail["additions"]:
            parts.append(f"{add} {_identities(self.detail['additions'])} to {self.flow}")
        if self.detail["removals"]:
            parts.append(f"{remove} {_identities(self.detail['removals'])} from {self.flow}")
        return " and ".join(parts)

    @property
    def approval(self) -> str:
        # What a rule or `now` applied without approvers is in the entry before.
        approvers = ", ".join(map(self.names.person, self.detail["approvers"]))
        return f", approved by {approvers}" if approvers else ""

    @property
    def identity(self) -> str:
        return text.identity(self.detail["identity"], 60)

    @property
    def gone(self) -> str:
        return " (already removed)" if self.detail["was_gone"] else ""

    @property
    def counts(self) -> str:
        before = self.detail["before"]
        after = self.detail["after"]
        return f"{len(before):,} → {text.count(len(after), 'test user')}"

    @property
    def permission(self) -> str:
        permission = _PERMISSIONS.get(self.entry.subject)
        wanted = f"permission to {permission}" if permission else "access"
        return f"{wanted} ({self['reason'].replace('_', ' ')})"

    @property
    def time(self) -> str:
        return text.duration(self.detail["seconds"])

    @property
    def preset(self) -> str:
        return text.code(f"@{self.entry.subject}", 60)

    @property
    def after(self) -> str:
        return _identities(self.detail["after"])

    @property
    def call(self) -> str:
        return text.code(f"{self.detail['method']} {self.detail['path']}", 160)

    @property
    def body(self) -> str:
        digest = text.code(self.detail["sha256"][:12])
        return f"{text.count(int(self.detail['size']), 'byte')}, SHA-256 {digest}"

    @property
    def outcome(self) -> str:
        status = self.detail["status"]
        return f"status {int(status)}" if status else "the outcome is unknown"


# The sentence for each action. `{0.…}` and `{0[…]}` are words from `_Words`.
SENTENCES = {
    "request.created": "{0.actor} asked to {0.wanted} {0.request}",
    "request.created_without_approval": (
        "{0.actor} asked to {0.wanted} without approval {0.request}"
    ),
    "request.approved": "{0.actor} approved a change to {0.flow} {0.request}",
    "request.approved_by_rule": "A change to {0.flow} was approved by a rule {0.request}",
    "request.denied": "{0.actor} denied a change to {0.flow} {0.request}",
    "request.cancelled": "{0.actor} cancelled a change to {0.flow} {0.request}",
    "request.retried": "{0.actor} retried a change to {0.flow} {0.request}",
    "request.applied": "Gatehouse {0.done}{0.approval} {0.request}",
    "request.failed": "A change to {0.flow} failed {0.request}",
    "request.asked_again": (
        "A change to {0.flow} needs approval again, because its effect has changed {0.request}"
    ),
    "request.escalated": (
        "A change to {0.flow} was escalated because it was pending too long {0.request}"
    ),
    "request.expired": "A request expired {0.request}",
    "request.refused": "{0.actor} couldn't {0[act]} a request {0.request}",
    "flow.changed": "The test users of {0.flow} changed: {0.counts}",
    "grant.ended": "Access to {0.flow} ended for {0.identity}{0.gone}",
    "grant.end_failed": "Access to {0.flow} expired but couldn't be removed: {0[reason]}",
    "permission.refused": "{0.actor} was refused {0.permission}",
    "plan.set": "{0.actor} changed the plan of {0.subject} from {0[before]} to {0[plan]}",
    "alert.muted": "{0.actor} muted alerts about {0.subject} for {0.time}",
    "alert.unmuted": "{0.actor} unmuted alerts about {0.subject}",
    "preset.saved": "{0.actor} saved the preset {0.preset}: {0.after}",
    "preset.deleted": "{0.actor} deleted the preset {0.preset}",
    "gateway.write": "{0.actor} sent {0.call} for {0[organization]} ({0.body}): {0.outcome}",
}


def _identities(identities: Sequence[str]) -> str:
    shown = ", ".join(text.identity(identity, 60) for identity in identities[:IDENTITIES_SHOWN])
    rest = len(identities) - IDENTITIES_SHOWN
    return f"{shown} and {rest:,} more" if rest > 0 else shown
