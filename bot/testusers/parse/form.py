"""The parser for the `/testusers` form, and the values that buttons fill in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from bot.approvals.times import parse_duration
from bot.slack.messages.block_kit import ButtonValue
from bot.slack.parse import escaped, read_words, recover
from bot.spelling import DOUBLE_QUOTES, LONG_DASHES, UNSEEN, folded
from bot.testusers.parse.command import (
    EMAIL,
    ChangeKind,
    ChangeRequest,
    OddWord,
    duration_problem,
    is_identity,
    phone_in,
    read_identities,
    reason_problem,
    unclear,
)
from bot.testusers.rules.changes import identities_problem

MOST_CHARACTERS = 40_000
# The number of characters of a line that an error names.
LINE_CHARACTERS = 80
_LINK = r"(?:https?|ftp|file|slack)://\S+"
# The local part has at most 64 characters (RFC 5321), which also limits the time to find it.
_MAIL = rf"(?=[^@]{{1,64}}@){EMAIL}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_DATE = r"\d{4}-\d{2}-\d{2}"
# A date or a time after a number isn't part of it.
_PHONE = rf"\+?\(?\d(?:[ ().\-/\u00a0]{{0,2}}(?!{_DATE})\d){{6,}}"
_CANDIDATE = re.compile(
    rf"(?P<link>{_LINK})|(?<![\w.:+-])(?P<mail>(?:mailto:)?{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<![^\W_])(?<!\w_)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})(?!\w|:\d)"
)
_ENDS = ".,;:!?)]}"
_MARKS = "*_~`"
# Numbers without a `+` might not be phone numbers, so they need more digits.
DIGITS, DIGITS_WITHOUT_PLUS = range(7, 16), range(9, 16)
_DASHES = re.compile(f"[{LONG_DASHES}]")
# Slack marks email addresses and phone numbers: `<mailto:ada@example.com|ada@example.com>`.
_MARKED = re.compile(r"(<(?:mailto|tel):[^<>]+>)")
# In `whatsapp:+15550100`, Slack marks only the number. `Phone:` in front of one is no scheme.
_AFTER_SCHEME = re.compile(
    r"(?<![A-Za-z0-9+.-])([a-z][a-z0-9+.-]*:)(<(?:mailto|tel):([^<>|]+)[^<>]*>)"
)


@dataclass(frozen=True)
class Prefilled(ButtonValue):
    """The values of the form's inputs, which buttons store under short names.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add` or `remove`.
        identities: The identities that a button fills in.
        duration: The duration as typed.
        until: The end of access.
        reason: The reason as typed.
        more_seconds: The number of seconds that a button adds without opening the form.
        lines: The lines of the identities input, as typed.
        ends_at: The current end of access. It isn't stored in buttons, because it may change.
    """

    flow: Annotated[str, Field(alias="f")] = ""
    kind: Annotated[ChangeKind, Field(alias="k")] = "add"
    identities: Annotated[tuple[str, ...], Field(alias="i")] = ()
    duration: Annotated[str, Field(alias="d")] = ""
    until: Annotated[datetime | None, Field(alias="u")] = None
    reason: Annotated[str, Field(alias="r")] = ""
    more_seconds: Annotated[int, Field(alias="m")] = 0
    lines: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    ends_at: Annotated[datetime | None, Field(exclude=True)] = None


NOTHING = Prefilled()


@dataclass(frozen=True)
class ShownRequest:
    """The value of a button on a card: the request, and the version of what the card says.

    `version` is 0 for a button from before version 0.4.0.
    """

    request_id: str
    version: int = 0

    def value(self) -> str:
        """Return the button's value."""
        return f"{self.request_id}:{self.version}"

    @classmethod
    def of(cls, value: str) -> "ShownRequest":
        """Read a button's value."""
        request_id, _, version = value.partition(":")
        return cls(request_id, int(version) if version.isdecimal() else 0)


def parse_form(form: Prefilled, now: datetime) -> ChangeRequest | dict[str, str]:
    """Return the change requested in a form, or a dictionary of problems keyed by input name.

    Each line is an identity.
    """
    # Messages say “for 2h”, so that can be typed here, too.
    typed = folded(form.duration).removeprefix("for ")
    reason = " ".join(form.reason.split())
    identities, problem = read_lines(form.lines)
    until = form.until
    wrong = {
        "flow": "" if form.flow else "Choose a flow.",
        "lines": problem or identities_problem(identities),
        "reason": reason_problem(reason),
    }
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
        form.kind,
        form.flow,
        identities,
        parse_duration(typed) if typed else None,
        reason=reason,
        until=until,
    )


def read_lines(lines: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the identities on these lines, and a sentence about lines that can't be read, if any.

    Each line is one identity, typed as in the command.
    """
    identities = list[str]()
    odd = list[OddWord]()
    crowded = list[str]()
    for line in lines:
        typed = escaped(line)
        found, others = read_identities(read_words(typed, commas=True), typed)
        identities += found
        is_crowded = len(found) + len(others) > 1
        if is_crowded and found:
            crowded.append(line.strip())
        if is_crowded and others:
            odd.append(OddWord(line.strip()))
        else:
            odd += others
    problems = [unclear(odd)] if odd else []
    if crowded:
        problems.append(f"Each identity needs a line of its own: “{crowded[0][:LINE_CHARACTERS]}”.")
    return tuple(identities), " ".join(problems)


def as_line(identity: str) -> str:
    """Return a form line for exactly this identity, in quotation marks if necessary."""
    return identity if read_lines([identity]) == ((identity,), "") else quoted(identity)


def quoted(identity: str) -> str:
    """Put an identity in single or double quotation marks, whichever it doesn't contain."""
    mark = "'" if any(mark in identity for mark in DOUBLE_QUOTES) else '"'
    return f"{mark}{identity}{mark}"


def moment(seconds: str) -> datetime | None:
    """Return the time from a date picker (seconds since 1970), or None if it's empty."""
    return datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None


def mentioned_identities(text: str) -> tuple[str, ...]:
    """Return the identities in the text of a Slack message, in order and without duplicates.

    >>> mentioned_identities("Call +1 555 0100 or write to ada@example.com")
    ('+15550100', 'ada@example.com')
    """
    # `split` returns the text between the marked addresses at even positions.
    identities = list[str]()
    joined = _AFTER_SCHEME.sub(_joined, text[:MOST_CHARACTERS])
    for at, part in enumerate(_MARKED.split(joined)):
        typed = recover(part)
        plain = _DASHES.sub("-", UNSEEN.sub(" ", typed))
        is_marked = at % 2 == 1
        if is_marked and "@" in part:
            identities += filter(is_identity, [plain])
        # `recover` leaves a link that shows another address than its own as it is.
        elif not is_marked or typed != part:
            identities += _unmarked(plain)
    return tuple(dict.fromkeys(identities))


def _joined(found: re.Match[str]) -> str:
    """Put a marked address behind its scheme, unless the link shows another address."""
    scheme, link, address = found.groups()
    return found.group() if recover(link) == link else scheme + address


def _without_punctuation(found: str, before: str) -> str:
    """Remove punctuation at the end, and a formatting mark if it also stands `before` the text."""
    while found[-1:] in {*_ENDS} or (found[-1:] in {*_MARKS} and found[-1:] == before):
        found = found[:-1]
    return found


def _unmarked(text: str) -> Iterator[str]:
    for match in _CANDIDATE.finditer(text):
        kind = match.lastgroup
        found = _without_punctuation(match.group(), text[: match.start()][-1:])
        scheme, _, value = found.partition(":")
        if kind == "mail":
            yield found.removeprefix("mailto:")
        elif kind == "phone" or (kind == "scheme" and scheme.casefold() == "tel"):
            found = found if kind == "phone" else value
            digits, number = re.sub(r"\D", "", found), phone_in(found)
            if number and len(number) > DIGITS.start:
                yield number
            elif not number and len(digits) in DIGITS_WITHOUT_PLUS:
                yield digits
        # Accept `whatsapp:+1555`, but not `Note:this`.
        elif kind == "scheme" and (scheme.islower() or re.search(r"[\d@]", value)):
            yield from filter(is_identity, [found])
