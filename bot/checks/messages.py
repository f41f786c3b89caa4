"""The answer to `/gatehouse status`, and alerts about broken parts of the bot."""

from datetime import datetime

from bot import __version__
from bot.checks.rules import Part, Status
from bot.services.calls import ServiceSeen
from bot.slack.messages import block_kit, text
from bot.slack.messages.block_kit import Message


def status(report: Status, *, is_for_admin: bool = False) -> Message:
    """Return the answer to `status`: a verdict, the problems, and details of the current state."""
    findings = [trouble.finding for trouble in report.broken]
    problems = [row.for_operators if is_for_admin else row.sentence for row in findings]
    verdict = ":white_check_mark: *Everything is working.*"
    if report.troubles:
        verdict = f":warning: *Needs attention:* {text.escape(', '.join(report.troubles))}."
    database = "*unreachable*" if report.jobs is None else "reachable"
    lines = [
        verdict,
        *(f"• {text.escape(problem, 500)}" for problem in problems),
        f"Gatehouse {__version__}, up {text.duration(report.uptime_seconds)}",
        f"{report.database} database: {database}",
        *map(_service, report.services),
        *(f"{name.replace('_', ' ').capitalize()}: {n:,}" for name, n in report.counts.items()),
    ]
    if report.jobs is not None:
        lines.append(f"Background jobs: {report.jobs.due:,} due, {report.jobs.late:,} late")
    return Message.of(*lines)


def _service(seen: ServiceSeen) -> str:
    name = text.escape(seen.name, 80)
    if not (seen.succeeded_at or seen.failed_at):
        return f"{name}: not used yet"
    state = "*failing*" if seen.is_failing else "OK"
    success = f"last success {text.time(seen.succeeded_at)}" if seen.succeeded_at else "no success"
    failure = "no failures"
    if seen.failed_at:
        cause = text.escape((seen.failure or "unknown").replace("_", " "))
        failure = f"last failure {text.time(seen.failed_at)} ({cause})"
    return f"{name}: {state} · {success}, {failure}"


def alert(part: Part, sentence: str, opened_at: datetime, ended_at: datetime | None) -> Message:
    """Return the alert for a problem. `ended_at` is None while the problem lasts."""
    reason = text.escape(sentence, 500)
    if ended_at is None:
        headline = f":warning: *Needs attention: {part.noun}.* {reason}"
        small = f"Since {text.time(opened_at)}. For details, use `/gatehouse status`."
    else:
        headline = f":white_check_mark: *Working again: {part.noun}.* The problem was: {reason}"
        small = f"The problem lasted from {text.time(opened_at)} to {text.time(ended_at)}."
    return Message.of(headline).plus(block_kit.context(small))
