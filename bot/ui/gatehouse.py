"""`/gatehouse`: who you are, whether everything works, and the audit."""

from collections.abc import Callable, Mapping, Sequence

from bot.model.audit import RecordedEntry
from bot.model.status import JobCount, ServiceSeen, Status
from bot.permissions import LEAST_ROLE, Permission, Person, Role
from bot.ui import blocks, text
from bot.ui.message import TEXT_CHARACTERS, Message

AUDIT_CHARACTERS = 220
CHUNK_CHARACTERS = 2900
MOST_CHUNKS = 3
# The outcomes of service errors, in words.
FAILURES = {
    "unreachable": "could not be reached",
    "timeout": "no whole answer in time",
    "redirected": "answered with another address",
    "too_large": "an answer too large to read",
    "unreadable": "an answer that cannot be read",
    "not_json": "an answer that is no JSON",
    "wrong_form": "an answer of another form than documented",
    "credentials_refused": "the credential was refused",
    "permission_missing": "the credential lacks a right",
    "rotating_token": "a kind of OAuth that is not supported",
    "rate_limited": "too many calls",
    "service_refused": "the call was refused",
    "service_failed": "a problem of its own",
    "service_error": "an error",
}


def whoami(person: Person, may: Callable[[Permission], bool]) -> Message:
    """Who the asker is to the bot, and what they may do."""
    roles = ", ".join(role for role in Role if role in person.roles) or "none"
    lines = [f"You are *{text.person(person.name, person.slack_user_id)}*. Your roles: *{roles}*."]
    if person.doubt:
        lines.append(f":warning: {text.sentence(person.doubt)}")
    lines += [_right(permission, allowed=may(permission)) for permission in LEAST_ROLE]
    return _message(lines)


def _right(permission: Permission, *, allowed: bool) -> str:
    if allowed:
        return f"• You may {permission}."
    return f"• You may not {permission} _(needs the role {LEAST_ROLE[permission]})_."


def status(report: Status) -> Message:
    """Whether everything works."""
    uptime = text.duration(report.uptime_seconds)
    state = "works" if report.is_database_well else "*cannot be reached*"
    lines = [
        _verdict(report.troubles),
        f"*Gatehouse {report.version}*, up {uptime}",
        f"• Database: {report.database}, {state}",
        *(f"• {_service(seen)}" for seen in report.services),
        *(f"• {name}: {count:,}" for name, count in report.counts.items()),
    ]
    if report.jobs is not None:
        lines.append(f"• {_jobs(report.jobs)}")
    return _message(lines)


def _verdict(troubles: Sequence[str]) -> str:
    if not troubles:
        return "*All is well.*"
    need = "needs" if len(troubles) == 1 else "need"
    named = text.escape(", ".join(troubles))
    return f"*{text.count(len(troubles), 'thing')} {need} a look:* {named}."


def _service(seen: ServiceSeen) -> str:
    name = seen.name[:1].upper() + seen.name[1:]
    if seen.succeeded_at is None and seen.failed_at is None:
        return f"{name}: not called since this process started"
    good = f"last success {text.time(seen.succeeded_at)}" if seen.succeeded_at else "no success yet"
    if seen.failed_at is None:
        return f"{name}: {good}, no failure"
    outcome = seen.failure or "unknown"
    why = text.escape(FAILURES.get(outcome, outcome.replace("_", " ")))
    return f"{name}: {good}, last failure {text.time(seen.failed_at)} ({why})"


def _jobs(count: JobCount) -> str:
    return f"Jobs: {count.total:,} waiting, {count.due:,} due, {count.late:,} late"


def audit(entries: Sequence[RecordedEntry], head: str, names: Mapping[str, str]) -> Message:
    """The newest entries, newest first, and the head to note for `audit verify --head`.

    `names` are those of the actors, by Slack user id.
    """
    if not entries:
        return _message(["The audit is empty."])
    lines = [_entry(entry, names.get(entry.actor, entry.actor)) for entry in entries]
    footer = f"Head: `{head}`. Note it: `python -m bot audit verify --head` finds a cut tail by it."
    chunks = _chunks(lines)
    shown = sum(chunk.count("\n") + 1 for chunk in chunks)
    title = f"*The newest {text.count(shown, 'entry', 'entries')} of the audit*"
    if shown < len(lines):
        title += f" (of {len(lines)} asked for: a message holds no more)"
    fallback = text.cut("\n".join((title, *chunks)), TEXT_CHARACTERS - len(footer) - 1)
    sections = [blocks.section(one) for one in (title, *chunks)]
    return Message(f"{fallback}\n{footer}", (*sections, blocks.context(footer)))


def _entry(entry: RecordedEntry, name: str) -> str:
    who = text.person(name, text.escape(entry.actor, 64))
    detail = text.code(entry.detail, AUDIT_CHARACTERS)
    what = f"{text.escape(entry.action, 64)} {text.escape(entry.subject, 80)}"
    return f"• #{entry.position} {text.clock_time(entry.at)} *{who}* {what} {detail}"


def _chunks(lines: Sequence[str]) -> list[str]:
    """Return the lines in sections, as many as a whole message may hold (about 12,000)."""
    chunks: list[str] = []
    for line in lines:
        if chunks and len(chunks[-1]) + len(line) < CHUNK_CHARACTERS:
            chunks[-1] += f"\n{line}"
        elif len(chunks) < MOST_CHUNKS:
            chunks.append(line)
        else:
            break
    return chunks


def _message(lines: Sequence[str]) -> Message:
    markup = "\n".join(lines)
    return Message(text.cut(markup, 3900), (blocks.section(markup),))
