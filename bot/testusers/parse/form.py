"""The values in the `/testusers` form, and in the buttons that open it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from bot.approvals.times import When
from bot.errors import Unsent
from bot.slack.messages.block_kit import OPTION_CHARACTERS, VALUE_CHARACTERS, ButtonValue
from bot.testusers.parse.identities import read_lines
from bot.testusers.rules.requests import MAX_REASON_CHARS

FOR_CHARACTERS = 80
# In the year 5138. Nothing can be added to a time at the end of the calendar.
LAST_MOMENT = 99_999_999_999
# The most characters of these inputs.
LIMITS = {
    "flow": OPTION_CHARACTERS,
    "duration": FOR_CHARACTERS,
    "reason": MAX_REASON_CHARS,
}

ChangeKind = Literal["add", "remove"]


@dataclass(frozen=True)
class Prefilled(ButtonValue):
    """The values of the form's inputs, which buttons store.

    Attributes:
        flow: A flow's alias or SID.
        kind: `add` or `remove`.
        identities: The identities that a button fills in.
        duration: The duration as typed.
        until: The end of access.
        reason: The reason as typed.
        lines: More lines of the identities input, as typed.
    """

    flow: str = ""
    kind: ChangeKind = "add"
    identities: tuple[str, ...] = ()
    duration: str = ""
    until: When | None = None
    reason: str = ""
    lines: tuple[str, ...] = ()

    def unsent(self) -> Unsent:
        """Return the value of a button that opens the form, and the texts that don't fit."""
        fitting, texts = self, list[str]()
        for name, limit in LIMITS.items():
            if len(typed := getattr(self, name)) > limit:
                empty: Any = {name: ""}
                fitting = replace(fitting, **empty)
                texts.append(typed)
        if len(fitting.value()) > VALUE_CHARACTERS:
            fitting = replace(fitting, identities=(), lines=())
            texts.append("\n".join((*map(as_line, self.identities), *self.lines)))
        return Unsent(fitting.value(), tuple(texts))


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


def as_line(identity: str) -> str:
    """Return a form line for exactly this identity, in quotation marks if necessary.

    An identity with both kinds of quotation marks might be refused in the form.
    """
    for line in (identity, f'"{identity}"', f"'{identity}'"):
        if read_lines([line])[:2] == ((identity,), ()):
            return line
    return identity


def moment(seconds: str) -> datetime | None:
    """Return the time from a date picker (seconds since 1970), or None if it's empty.

    Times that can't be read are in 1970, so that they're refused and don't mean access forever.
    Times after the year 5138 are in that year.
    """
    if not seconds:
        return None
    # A number with thousands of digits can't be read at all.
    number = int(seconds[:20]) if seconds.isdecimal() else 0
    return datetime.fromtimestamp(min(number, LAST_MOMENT), UTC)
