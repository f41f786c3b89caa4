"""The parser for the `/testusers` form, and the values that buttons fill in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from bot.approvals.parse import parse_duration
from bot.slack.messages.block_kit import ButtonValue
from bot.slack.parse import recover
from bot.spelling import DOUBLE_QUOTES, LONG_DASHES, UNSEEN, tidy_identity
from bot.testusers.parse.command import (
    ChangeRequest,
    duration_problem,
    is_identity,
    phone_in,
    question,
    reason_problem,
)
from bot.testusers.rules.changes import identities_problem

MOST_CHARACTERS = 40_000
_LINK = r"(?:https?|ftp|file|slack)://\S+"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_DATE = r"\d{4}-\d{2}-\d{2}"
_PHONE = r"\+?\(?\d(?:[ ().\-/\u00a0]{0,2}\d){6,}"
_CANDIDATE = re.compile(
    # An address can't start in the middle of another address, so each character is read once.
    rf"(?P<link>{_LINK})|(?<![\w.+-])(?P<mail>(?:mailto:)?{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<!\w)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})(?!\w)"
)
_ENDS = ".,;:!?)]}*_~`"
# Numbers without a `+` might not be phone numbers, so the form asks about them.
DIGITS, DIGITS_WITHOUT_PLUS = range(7, 16), range(9, 16)
_DASHES = re.compile(f"[{LONG_DASHES}]")


@dataclass(frozen=True)
class Prefilled(ButtonValue):
    """The values of the form's inputs, which buttons store under short names.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add`, `remove`, or `add@` followed by the name of a preset.
        identities: The identities that a button fills in.
        duration: The duration as typed.
        until: The end of access.
        reason: The reason as typed.
        more_seconds: The number of seconds that a button adds without opening the form.
        lines: The lines of the identities input, as typed.
        ends_at: The current end of access. It isn't stored in buttons, because it may change.
    """

    flow: Annotated[str, Field(alias="f")] = ""
    kind: Annotated[str, Field(alias="k")] = "add"
    identities: Annotated[tuple[str, ...], Field(alias="i")] = ()
    duration: Annotated[str, Field(alias="d")] = ""
    until: Annotated[datetime | None, Field(alias="u")] = None
    reason: Annotated[str, Field(alias="r")] = ""
    more_seconds: Annotated[int, Field(alias="m")] = 0
    lines: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    ends_at: Annotated[datetime | None, Field(exclude=True)] = None


NOTHING = Prefilled()


def parse_form(form: Prefilled, now: datetime) -> ChangeRequest | dict[str, str]:
    """Return the change requested in a form, or a dictionary of problems keyed by input name.

    Each line is an identity. Characters that phones add are removed, except in quotation marks.
    """
    identities = tuple(filter(None, map(_identity, form.lines)))
    typed, reason = form.duration.strip(), " ".join(form.reason.split())
    odd, until = odd_line(form.lines), form.until
    preset = form.kind.partition("@")[2]
    wrong = {
        "flow": "" if form.flow else "Choose a flow.",
        "lines": (identities or not preset) and identities_problem(identities),
        "reason": reason_problem(reason),
    }
    if odd:
        wrong["lines"] = question(odd, phone_in(odd))
    if form.kind == "remove":
        only_add = {"duration": ("A duration", typed), "until": ("An end", until)}
        for name, (what, value) in only_add.items():
            wrong[name] = f"{what} only works with Add." if value else ""
    else:
        if typed and until:
            wrong["duration"] = "Fill in “For” or “Until”, not both."
        elif typed and not parse_duration(typed):
            wrong["duration"] = duration_problem(typed)
        if until and until <= now:
            wrong["until"] = "The end must be in the future."
    if found := {name: problem for name, problem in wrong.items() if problem}:
        return found
    return ChangeRequest(
        "remove" if form.kind == "remove" else "add",
        form.flow,
        identities,
        parse_duration(typed) if typed else None,
        reason=reason,
        presets=(preset,) if preset else (),
        until=until,
    )


def as_line(identity: str) -> str:
    """Return a form line for exactly this identity, in quotation marks if necessary."""
    is_plain = is_identity(identity) and _identity(identity) == identity
    return identity if is_plain else f'"{identity}"'


def _is_quoted(line: str) -> bool:
    return len(line) > len('""') and {*DOUBLE_QUOTES}.issuperset((line[0], line[-1]))


def _identity(line: str) -> str:
    bare = line.strip()
    return bare[1:-1] if _is_quoted(bare) else tidy_identity(bare)


def odd_line(lines: Sequence[str]) -> str:
    """Return the first unquoted line that doesn't look like an identity, or an empty string."""
    for line in lines:
        tidied = tidy_identity(line)
        if tidied and not (_is_quoted(line.strip()) or is_identity(tidied)):
            return tidied
    return ""


def moment(seconds: str) -> datetime | None:
    """Return the time from a date picker (seconds since 1970), or None if it's empty."""
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None


def mentioned_identities(text: str) -> tuple[str, ...]:
    """Return the identities in the text of a Slack message, in order and without duplicates.

    >>> mentioned_identities("Call +1 555 0100 or write to ada@example.com")
    ('+15550100', 'ada@example.com')
    """
    plain, identities = _DASHES.sub("-", UNSEEN.sub(" ", recover(text[:MOST_CHARACTERS]))), []
    for match in _CANDIDATE.finditer(plain):
        kind, found = match.lastgroup, match.group().rstrip(_ENDS)
        scheme, _, value = found.partition(":")
        if kind == "mail":
            identities.append(found.removeprefix("mailto:"))
        elif kind == "phone" or (kind == "scheme" and scheme.casefold() == "tel"):
            found = found if kind == "phone" else value
            digits, number = re.sub(r"\D", "", found), phone_in(found)
            if number and len(number) > DIGITS.start:
                identities.append(number)
            elif not number and len(digits) in DIGITS_WITHOUT_PLUS:
                identities.append(digits)
        # Accept `whatsapp:+1555`, but not `Note:this`.
        elif kind == "scheme" and (scheme.islower() or re.search(r"[\d@]", value)):
            identities += [found] if is_identity(found) else []
    return tuple(dict.fromkeys(identities))
