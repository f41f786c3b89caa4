"""Alerts: an organization that the service blocks, and that it no longer does."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.model.blocks import BlockCode
from bot.model.incidents import Incident
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock

_LIMIT_IN_WORDS = {
    BlockCode.MINUTE: "requests a minute",
    BlockCode.DAY: "requests a day",
    BlockCode.CONCURRENT: "requests at the same time",
}
_OWN = {"minute": "this minute", "day": "this day", "concurrent": "at the same time"}
_KIND = {BlockCode.MINUTE: "minute", BlockCode.DAY: "day", BlockCode.CONCURRENT: "concurrent"}


def card(incident: Incident, name: str) -> Message:
    """The incident's one message: blocked, or cleared."""
    is_open = incident.closed_at is None
    headline = _headline(incident, name)
    pairs = [
        ("Organization", f"{text.escape(name, 300)}\n{text.code(_id(incident))}"),
        ("Data center", text.escape(incident.key.data_center)),
        ("Code and limit", _code_and_limit(incident)),
        ("The service's words", text.escape(incident.detail.get("words") or "none", 300)),
        ("The bot's own use then", _own_use(incident.detail)),
        _what_next(incident),
    ]
    verdict = _whose_doing(incident)
    lines = [headline, verdict, *(f"{label}: {value}" for label, value in pairs)]
    return Message(
        text.cut("\n".join(line.replace("\n", " ") for line in lines), 3900),
        (
            blocks.section(f"{headline}\n{verdict}"),
            *blocks.fields(pairs),
            blocks.context(_small_print(incident)),
            *([_buttons(incident, name)] if is_open else []),
        ),
    )


def cleared_note(incident: Incident, name: str) -> Message:
    """What is said in the thread when a call has passed."""
    return Message(
        f":white_check_mark: Cleared after {_lasted(incident)}: a call to"
        f" {text.escape(name, 300)} has passed."
    )


def muted(name: str, until: datetime) -> Message:
    """What somebody is told who has muted an alert."""
    return Message(
        f"Muted: no new alert about {text.escape(name, 300)} before {text.clock_time(until)}."
        " This one stays up to date."
    )


def _headline(incident: Incident, name: str) -> str:
    shown = text.escape(name, 300)
    if incident.closed_at is not None:
        return f":white_check_mark: *Cleared* after {_lasted(incident)}: *{shown}*"
    return f":no_entry: *{shown}* is blocked by the inventory service"


def _whose_doing(incident: Incident) -> str:
    if incident.detail.get("is_foreign"):
        return "The bot's own use was below the limit: *another client* of the service caused it."
    return "The bot's own use was at the limit."


def _id(incident: Incident) -> str:
    return incident.key.organization_id or "no organization named"


def _code_and_limit(incident: Incident) -> str:
    code = BlockCode(incident.code)
    sent = incident.detail.get("sent_code")
    as_sent = "" if sent == incident.code else f" (sent as {'none' if sent is None else sent})"
    limit = incident.detail["own"][_KIND[code]][1]
    return f"*{incident.code}*{as_sent}: {limit:,} {_LIMIT_IN_WORDS[code]}"


def _own_use(detail: Mapping[str, Any]) -> str:
    own: Mapping[str, Sequence[int]] = detail["own"]
    return ", ".join(f"{own[kind][0]}/{own[kind][1]} {words}" for kind, words in _OWN.items())


def _what_next(incident: Incident) -> tuple[str, str]:
    if incident.closed_at is not None:
        return "Ended", text.clock_time(incident.closed_at)
    block = incident.blocks.longest
    if block is None:
        return "Next try", "now"
    return "Next try", f"{text.clock_time(datetime.fromtimestamp(block.until, UTC))}, by the bot"


def _small_print(incident: Incident) -> str:
    parts = [
        f"Since {text.clock_time(incident.opened_at)}",
        f"refused {text.count(incident.refusals, 'time')}",
    ]
    if incident.closed_at is None and incident.muted_until is not None:
        parts.append(f"muted until {text.clock_time(incident.muted_until)}")
    return " · ".join(parts)


def _buttons(incident: Incident, name: str) -> SlackBlock:
    value = str(incident.id)
    check = blocks.button(
        "Check now", ids.INCIDENT_CHECK, value, spoken=f"Check {text.shorten(name, 50)} now"
    )
    if incident.muted_until is not None:
        return blocks.actions(check)
    mute = blocks.button(
        "Mute 1 h", ids.INCIDENT_MUTE, value, spoken=f"Mute {text.shorten(name, 40)} for 1 hour"
    )
    return blocks.actions(check, mute)


def _lasted(incident: Incident) -> str:
    ended_at = incident.closed_at or incident.opened_at
    return text.duration((ended_at - incident.opened_at).total_seconds())
