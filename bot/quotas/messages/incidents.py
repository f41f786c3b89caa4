"""Alerts about organizations that the service blocks, or has stopped blocking."""

from datetime import UTC, datetime

from bot.quotas.rules.blocks import BlockCode, Incident, IncidentDetail
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.message import Message, SlackBlock

_LIMITS = {
    BlockCode.MINUTE: ("minute", "requests per minute"),
    BlockCode.DAY: ("day", "requests per day"),
    BlockCode.CONCURRENT: ("concurrent", "requests at once"),
}
CLIENTS_SHOWN = 8
_OWN = {"minute": "per minute", "day": "per day", "concurrent": "at once"}


def card(incident: Incident, name: str) -> Message:
    """Return the incident's message, blocked or cleared."""
    is_open = incident.closed_at is None
    sentences = (
        _whose_doing(incident),
        _who_else_is_affected(incident),
        _what_is_lowered(incident),
        _what_next(incident),
    )
    lines = [_headline(incident, name), " ".join(filter(None, sentences))]
    reason = text.escape(incident.detail.words, 300)
    lines += [f"> {reason}"] if reason else []
    lines += _clients(incident.detail)
    small_print = _small_print(incident)
    return Message(
        "\n".join([*lines, small_print]),
        (
            block_kit.section("\n".join(lines)),
            block_kit.context(small_print),
            *([_buttons(incident, name)] if is_open else []),
        ),
    )


def cleared_note(incident: Incident, name: str) -> Message:
    """Return the thread reply for a call that succeeded."""
    why = incident.detail.ended_because
    if why:
        return Message(f"Closed: {text.escape(name, 300)} {why}, so Gatehouse has stopped trying.")
    return Message(
        f":white_check_mark: Cleared after {_lasted(incident)}: calls to {text.escape(name, 300)}"
        " work again."
    )


def muted(name: str, until: datetime) -> Message:
    """Confirm a mute."""
    return Message(
        f"Muted: no new alerts about {text.escape(name, 300)} until {text.time(until)}."
        " This one keeps updating."
    )


def unmuted(name: str) -> Message:
    """Confirm the end of a mute."""
    return Message(f"Unmuted: new alerts about {text.escape(name, 300)} are posted again.")


def _headline(incident: Incident, name: str) -> str:
    center = f" ({text.escape(incident.key.data_center)})" if incident.key.organization_id else ""
    subject = f"*{text.escape(name, 300)}*{center}"
    _, limit, unit = _limit(incident)
    exceeded = f"limit of {limit:,} {unit} exceeded"
    why = incident.detail.ended_because
    if why and incident.closed_at is not None:
        return f":heavy_minus_sign: *Closed* after {_lasted(incident)}: {subject} {why}."
    if incident.closed_at is not None:
        was = f"It was blocked: {exceeded}."
        return f":white_check_mark: *Cleared* after {_lasted(incident)}: {subject}\n{was}"
    return f":no_entry: {subject} is blocked: {exceeded}"


def _limit(incident: Incident) -> tuple[int, int, str]:
    kind, unit = _LIMITS[BlockCode(incident.code)]
    used, limit = incident.detail.own[kind]
    return used, limit, unit


def _whose_doing(incident: Incident) -> str:
    used, _, unit = _limit(incident)
    if not incident.detail.is_foreign:
        return f"Gatehouse itself had reached the limit ({used:,} {unit})."
    made = f"made only {used:,} of them" if used else "made none of them"
    if incident.detail.may_be_plan:
        return (
            f"Gatehouse {made}, so *another client* used it up, or the organization's plan is"
            " smaller than the one set here."
        )
    return f"Gatehouse {made}, so *another client* used it up."


def _who_else_is_affected(incident: Incident) -> str:
    if incident.code != BlockCode.MINUTE or incident.closed_at is not None:
        return ""
    return "People who use the service in their browser may be locked out too."


def _what_is_lowered(incident: Incident) -> str:
    if not incident.detail.is_lowered:
        return ""
    if incident.code == BlockCode.MINUTE:
        return "For an hour, Gatehouse leaves more calls per minute to other clients."
    return "Gatehouse makes fewer calls at once for a day."


def _what_next(incident: Incident) -> str:
    block = incident.blocks.longest
    if incident.closed_at is not None:
        return ""
    if block is None:
        return "Gatehouse is trying again now."
    until = text.time(datetime.fromtimestamp(block.until, UTC))
    return f"Gatehouse tries again {until} and makes no calls until then."


def _small_print(incident: Incident) -> str:
    organization_id = incident.key.organization_id
    times = "once" if incident.refusals == 1 else f"{incident.refusals:,} times"
    parts = [
        text.code(organization_id) if organization_id else "no organization named",
        f"{text.escape(incident.key.data_center)}, code {incident.code}{_as_sent(incident)}",
        f"since {text.time(incident.opened_at)}",
        f"blocked {times}",
        f"Gatehouse's usage then: {_own_use(incident.detail)}",
    ]
    if incident.closed_at is not None:
        parts.append(f"ended {text.time(incident.closed_at)}")
    elif incident.muted_until is not None:
        by = f" by {text.escape(incident.muted_by, 80)}" if incident.muted_by else ""
        parts.append(f"muted until {text.time(incident.muted_until)}{by}")
    return " · ".join(parts)


def _as_sent(incident: Incident) -> str:
    sent = incident.detail.sent_code
    shown = "none" if sent is None else text.escape(str(sent), 40)
    return "" if sent == incident.code else f" (sent as {shown})"


def _own_use(detail: IncidentDetail) -> str:
    uses = ("/".join(map(_number, detail.own[kind])) + f" {words}" for kind, words in _OWN.items())
    return ", ".join(text.escape(use, 60) for use in uses)


def _number(stored: object) -> str:
    return f"{stored:,}" if isinstance(stored, int) else str(stored)


def _clients(detail: IncidentDetail) -> list[str]:
    """Return each gateway client's use, which is part of Gatehouse's use."""
    shown = [
        f"{text.escape(name)} {minute:,} per minute, {day:,} per day"
        for name, (minute, day) in list(detail.clients.items())[:CLIENTS_SHOWN]
    ]
    more = len(detail.clients) - len(shown)
    parts = [*shown, *([text.count(more, "more client")] if more else [])]
    return [f"Gateway clients had used: {'; '.join(parts)}."] if parts else []


def _buttons(incident: Incident, name: str) -> SlackBlock:
    value = str(incident.id)
    check = block_kit.button(
        "Check now", ids.INCIDENT_CHECK, value, spoken=f"Check {text.shorten(name, 50)} now"
    )
    short = text.shorten(name, 40)
    label, action_id, spoken = (
        ("Mute 1 h", ids.INCIDENT_MUTE, f"Mute {short} for 1 hour")
        if incident.muted_until is None
        else ("Unmute", ids.INCIDENT_UNMUTE, f"Unmute {short}")
    )
    return block_kit.actions(check, block_kit.button(label, action_id, value, spoken=spoken))


def _lasted(incident: Incident) -> str:
    ended_at = incident.closed_at or incident.opened_at
    return text.duration((ended_at - incident.opened_at).total_seconds())
